"""Ending: what follows from an outcome, written together with its attempt, its result and its outbox entry."""

from dataclasses import dataclass

from coatcheck.core import limits
from coatcheck.core.errors import ErrorInfo
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord, ResultInfo
from coatcheck.core.outcome import NEVER_STARTED, OVERDUE, Finish, Outcome, Requeue, ResultBody, Tally, settle
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.queue import put_waiting
from coatcheck.stores.sqlite.rows import EndedLease, Fixed, Moving, Place, error_values, job_from_parts
from coatcheck.stores.sqlite.transaction import Transaction

_EVENTS = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}
_INLINE_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends: with the counters it had and the policy that says how long its traces stay."""

    status: Status
    policy: Policy
    moving: Moving
    error: ErrorInfo | None = None
    result: ResultBody | None = None
    is_dead_letter: bool = False
    is_cancel_requested: bool = False
    cancel_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Settling:
    """An outcome with what is needed to decide what follows from it."""

    outcome: Outcome
    policy: Policy
    jitter: float


def settle_lease(
    transaction: Transaction, job_id: str, lease: EndedLease, settling: Settling, now: InstantMs
) -> JobRecord:
    """Write what follows from the end of an attempt whose lease row this transaction has just deleted."""
    place = Place(lease.operation, lease.tenant, lease.priority, job_id)
    fixed = Fixed._make(transaction.rows("open_job", job_id=job_id)[0])
    tally = Tally(
        attempt=lease.attempt,
        counted_attempts=lease.counted_attempts,
        max_attempts=fixed.max_attempts,
        crashes=lease.crashes,
        is_alone=bool(lease.is_alone),
        deadline_at=fixed.deadline_at,
        is_cancel_requested=bool(lease.cancel_requested),
    )
    settlement = settle(settling.outcome, tally, settling.policy, now, settling.jitter)
    _insert_attempt(transaction, job_id, lease, settlement, now)
    moving = _moved(lease, settlement, now)
    match settlement:
        case Finish():
            ending = Ending(
                settlement.status,
                settling.policy,
                moving,
                error=settlement.error if settlement.status is Status.FAILED else None,
                result=settlement.result,
                is_dead_letter=settlement.is_dead_letter,
                is_cancel_requested=bool(lease.cancel_requested),
                cancel_reason=lease.cancel_reason,
            )
            return end_job(transaction, place, fixed, ending, now)
        case Requeue():
            put_waiting(transaction, [(place, moving)], now)
            transaction.fault_point("retry-scheduled")
            return _told(transaction, EventType.REQUEUED, job_from_parts(place, fixed, moving, Status.QUEUED))


def end_job(transaction: Transaction, place: Place, fixed: Fixed, ending: Ending, now: InstantMs) -> JobRecord:
    """Make an open job final. It stands in no hot table any more when this is called."""
    expires_at, result_expires_at = _expiries(ending, now)
    dead_lettered_at = now if ending.is_dead_letter else None
    _write_end(transaction, place.job_id, ending, now)
    if fixed.deadline_at is not None:
        transaction.run("delete_deadline", deadline_at=fixed.deadline_at, job_id=place.job_id)
    if ending.is_dead_letter:
        transaction.fault_point("dead-lettered")
    job = job_from_parts(
        place,
        fixed,
        ending.moving,
        ending.status,
        finished_at=now,
        expires_at=expires_at,
        result_expires_at=result_expires_at,
        cancel_requested=ending.is_cancel_requested,
        cancel_reason=ending.cancel_reason,
        error=ending.error,
        dead_lettered_at=dead_lettered_at,
        result=_info(ending.result, result_expires_at, now),
    )
    return _told(transaction, _EVENTS[ending.status], job)


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


def _told(transaction: Transaction, event: EventType, job: JobRecord) -> JobRecord:
    transaction.tell(event, [job])
    transaction.hint(WakeUpKind.CHANGED, job.id)
    return job


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


def _expiries(ending: Ending, now: InstantMs) -> tuple[InstantMs, InstantMs | None]:
    """When the job and its result go."""
    retention = ending.policy.retention
    kept_s = {
        Status.SUCCEEDED: retention.succeeded_s,
        Status.FAILED: retention.failed_s,
        Status.CANCELLED: retention.cancelled_s,
    }[ending.status]
    expires_at = now + round(kept_s * 1000)
    if ending.result is None:
        return expires_at, None
    return expires_at, min(now + round(retention.result_s * 1000), expires_at)


def _write_end(transaction: Transaction, job_id: str, ending: Ending, now: InstantMs) -> None:
    moving, result = ending.moving, ending.result
    expires_at, result_expires_at = _expiries(ending, now)
    transaction.run(
        "finish_job",
        job_id=job_id,
        status=ending.status.value,
        version=moving.version,
        attempt=moving.attempt,
        counted_attempts=moving.counted_attempts,
        started_at=moving.started_at,
        available_at=moving.available_at,
        now=now,
        expires_at=expires_at,
        result_expires_at=result_expires_at,
        tombstone_until=expires_at + round(ending.policy.retention.tombstone_s * 1000),
        cancel_requested=int(ending.is_cancel_requested),
        cancel_reason=ending.cancel_reason,
        dead_lettered_at=now if ending.is_dead_letter else None,
        result_type=result.content_type if result else None,
        result_bytes=len(result.body) if result else None,
        **error_values(ending.error),
    )
    if result is not None:
        own_expiry = result_expires_at if result_expires_at != expires_at else None
        _insert_result(transaction, job_id, result, own_expiry)


def _info(result: ResultBody | None, result_expires_at: InstantMs | None, now: InstantMs) -> ResultInfo | None:
    if result is None or result_expires_at is None:
        return None
    size = len(result.body)
    is_inline = result.content_type == _INLINE_TYPE and size <= limits.INLINE_RESULT_BYTES_MAX
    return ResultInfo(result.content_type, size, result.body if is_inline and result_expires_at > now else None)


def _insert_attempt(
    transaction: Transaction, job_id: str, lease: EndedLease, settlement: Finish | Requeue, now: InstantMs
) -> None:
    transaction.run(
        "insert_attempt",
        job_id=job_id,
        number=lease.attempt,
        started_at=lease.attempt_started_at,
        now=now,
        outcome=settlement.outcome,
        **error_values(settlement.error),
    )


def _insert_result(transaction: Transaction, job_id: str, result: ResultBody, expires_at: InstantMs | None) -> None:
    transaction.run(
        "insert_result",
        job_id=job_id,
        content_type=result.content_type,
        file_name=result.file_name,
        expires_at=expires_at,
        body=result.body,
    )
    transaction.fault_point("result-stored-before-commit")
