"""Ending: what follows from outcomes, written together with their attempts, results and outbox entries."""

from dataclasses import dataclass
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.errors import ErrorInfo
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord, ResultInfo
from coatcheck.core.outcome import NEVER_STARTED, OVERDUE, Finish, Outcome, Requeue, ResultBody, Tally, settle
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.postgres.costs import give_back
from coatcheck.stores.postgres.queue import put_waiting
from coatcheck.stores.postgres.rows import (
    EndedLease,
    Fixed,
    Moving,
    Place,
    Row,
    columns,
    error_values,
    job_from_parts,
    plain,
)
from coatcheck.stores.postgres.transaction import Transaction

_EVENTS = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}
_INLINE_TYPE = "application/json"
_ENDED_COLUMNS, _ATTEMPT_COLUMNS = 17, 9
SUCCESS_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends: with the counters it had and the policy that says how long its traces stay."""

    status: Status
    policy: Policy
    moving: Moving
    error: ErrorInfo | None = None
    is_dead_letter: bool = False
    is_cancel_requested: bool = False
    cancel_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Settling:
    """An outcome with what is needed to decide what follows from it. `earlier_ms`: how long earlier attempts ran."""

    outcome: Outcome
    policy: Policy
    jitter: float
    earlier_ms: int = 0


class Success(NamedTuple):
    """An outcome that is final whatever the lease says."""

    result: ResultBody
    now: InstantMs
    expires_at: InstantMs
    result_expires_at: InstantMs
    tombstone_until: InstantMs

    @classmethod
    def of(cls, result: ResultBody, policy: Policy, now: InstantMs) -> "Success":
        """With the instants at which the job, its result and its tombstone go."""
        expires_at = _expires_at(Status.SUCCEEDED, policy, now)
        result_expires_at = min(now + round(policy.retention.result_s * 1000), expires_at)
        return cls(result, now, expires_at, result_expires_at, _tombstone_until(policy, expires_at))

    def row(self, lease: Row) -> Row:
        """For end_succeeded; `lease`: the three columns that name it."""
        result, *instants = self
        return *lease, *instants, plain(result.content_type), plain(result.file_name), result.body


class Endings:
    """What follows from the ends of many attempts and jobs, gathered to be written by a few statements."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._ended: list[Row] = []
        self._attempts: list[Row] = []
        self._waiting: list[tuple[Place, Moving, InstantMs]] = []
        self._told: list[tuple[EventType, JobRecord]] = []
        self._refunded: list[str] = []

    def settle_lease(self, lease: EndedLease, fixed: Fixed, settling: Settling, now: InstantMs) -> JobRecord:
        """Decide what follows from the end of an attempt whose lease row this transaction has just deleted. It did not
        succeed: what did is ended by end_succeeded."""
        place = Place(lease.operation, lease.tenant, lease.priority, lease.job_id)
        tally = Tally(
            attempt=lease.attempt,
            counted_attempts=lease.counted_attempts,
            max_attempts=fixed.max_attempts,
            crashes=lease.crashes,
            is_alone=lease.is_alone,
            deadline_at=fixed.deadline_at,
            is_cancel_requested=lease.cancel_requested,
            ran_ms=settling.earlier_ms + max(now - lease.attempt_started_at, 0),
        )
        settlement = settle(settling.outcome, tally, settling.policy, now, settling.jitter)
        error = error_values(settlement.error)
        ended = (lease.job_id, lease.attempt, lease.attempt_started_at, now, settlement.outcome, *error)
        self._attempts.append(ended)
        moving = _moved(lease, settlement, now)
        match settlement:
            case Finish():
                assert settlement.result is None, "only a success has a result"
                ending = Ending(
                    settlement.status,
                    settling.policy,
                    moving,
                    error=settlement.error if settlement.status is Status.FAILED else None,
                    is_dead_letter=settlement.is_dead_letter,
                    is_cancel_requested=lease.cancel_requested,
                    cancel_reason=lease.cancel_reason,
                )
                return self.end_job(place, fixed, ending, now)
            case Requeue():
                self._waiting.append((place, moving, now))
                self._transaction.fault_point("retry-scheduled")
                return self._tell(EventType.REQUEUED, job_from_parts(place, fixed, moving, Status.QUEUED))

    def note_success(self, lease: EndedLease, fixed: Fixed, success: Success) -> JobRecord:
        """Tell of a job that end_succeeded has ended."""
        place = Place(lease.operation, lease.tenant, lease.priority, lease.job_id)
        moving = Moving(
            available_at=lease.available_at,
            version=lease.version + 1,
            attempt=lease.attempt,
            counted_attempts=lease.counted_attempts,
            crashes=lease.crashes,
            is_alone=False,
            started_at=lease.started_at,
            updated_at=success.now,
        )
        self._transaction.fault_point("result-stored-before-commit")
        job = job_from_parts(
            place,
            fixed,
            moving,
            Status.SUCCEEDED,
            finished_at=success.now,
            expires_at=success.expires_at,
            result_expires_at=success.result_expires_at,
            cancel_requested=lease.cancel_requested,
            cancel_reason=lease.cancel_reason,
            result=_info(success),
        )
        return self._tell(EventType.SUCCEEDED, job)

    def end_job(self, place: Place, fixed: Fixed, ending: Ending, now: InstantMs) -> JobRecord:
        """Make an open job final. It stands in no hot table any more when this is called."""
        expires_at = _expires_at(ending.status, ending.policy, now)
        self._ended.append(_ended_row(place.job_id, ending, expires_at, now))
        if ending.moving.started_at is None and ending.policy.cost:
            self._refunded.append(place.job_id)
        if ending.is_dead_letter:
            self._transaction.fault_point("dead-lettered")
        job = job_from_parts(
            place,
            fixed,
            ending.moving,
            ending.status,
            finished_at=now,
            expires_at=expires_at,
            cancel_requested=ending.is_cancel_requested,
            cancel_reason=plain(ending.cancel_reason),
            error=_plain_error(ending.error),
            dead_lettered_at=now if ending.is_dead_letter else None,
        )
        return self._tell(_EVENTS[ending.status], job)

    async def write(self) -> None:
        """Write all of it."""
        if self._ended or self._attempts:
            await self._transaction.rows(
                "write_endings",
                *columns(self._ended, _ENDED_COLUMNS),
                *columns(self._attempts, _ATTEMPT_COLUMNS),
            )
        await give_back(self._transaction, self._refunded)
        await put_waiting(self._transaction, self._waiting)
        await self._transaction.tell(self._told)

    def _tell(self, event: EventType, job: JobRecord) -> JobRecord:
        self._told.append((event, job))
        self._transaction.hint(WakeUpKind.CHANGED, job.id)
        return job


def overdue_ending(deadline_at: InstantMs | None, waited: Moving, policy: Policy, now: InstantMs) -> Ending | None:
    """How a waiting job ends that came too late to start, or None where it may start."""
    if deadline_at is not None and deadline_at <= now:
        error = OVERDUE
    elif (
        policy.queue_limit_s is not None
        and waited.attempt == 0
        and waited.available_at + policy.queue_limit_s * 1000 <= now
    ):
        error = NEVER_STARTED
    else:
        return None
    return Ending(Status.FAILED, policy, waited.changed(now), error=error, is_dead_letter=True)


def _moved(lease: EndedLease, settlement: Finish | Requeue, now: InstantMs) -> Moving:
    """The counters after the attempt; where and how the job waits is settled only for a job that goes on."""
    goes_on = settlement if isinstance(settlement, Requeue) else None
    return Moving(
        available_at=goes_on.available_at if goes_on else lease.available_at,
        version=lease.version + 1,
        attempt=lease.attempt,
        counted_attempts=settlement.counted_attempts,
        crashes=goes_on.crashes if goes_on else lease.crashes,
        is_alone=goes_on.is_alone if goes_on else False,
        started_at=lease.started_at,
        updated_at=now,
    )


def _expires_at(status: Status, policy: Policy, now: InstantMs) -> InstantMs:
    retention = policy.retention
    match status:
        case Status.SUCCEEDED:
            kept_s = retention.succeeded_s
        case Status.FAILED:
            kept_s = retention.failed_s
        case _:
            kept_s = retention.cancelled_s
    return now + round(kept_s * 1000)


def _tombstone_until(policy: Policy, expires_at: InstantMs) -> InstantMs:
    return expires_at + round(policy.retention.tombstone_s * 1000)


def _ended_row(job_id: str, ending: Ending, expires_at: InstantMs, now: InstantMs) -> Row:
    moving = ending.moving
    return (
        job_id,
        ending.status.value,
        moving.version,
        moving.attempt,
        moving.counted_attempts,
        moving.started_at,
        moving.available_at,
        now,
        expires_at,
        _tombstone_until(ending.policy, expires_at),
        ending.is_cancel_requested,
        plain(ending.cancel_reason),
        ending.is_dead_letter,
        *error_values(ending.error),
    )


def _plain_error(error: ErrorInfo | None) -> ErrorInfo | None:
    if error is None:
        return None
    return ErrorInfo(error.category, plain(error.detail), plain(error.code), plain(error.operator_detail))


def _info(success: Success) -> ResultInfo:
    result, size = success.result, len(success.result.body)
    is_inline = result.content_type == _INLINE_TYPE and size <= limits.INLINE_RESULT_BYTES_MAX
    is_kept = success.result_expires_at > success.now
    return ResultInfo(result.content_type, size, result.body if is_inline and is_kept else None)
