"""Ending: what follows from outcomes, written together with their attempts, results and outbox entries.

Decided one by one, written all at once: each table takes the rows of all attempts that end in one statement.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.errors import ErrorInfo
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord, ResultInfo
from coatcheck.core.outcome import NEVER_STARTED, OVERDUE, Finish, Outcome, Requeue, ResultBody, Tally, settle
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.costs import give_back, ran_before_ms
from coatcheck.stores.sqlite.queue import put_waiting
from coatcheck.stores.sqlite.rows import EndedLease, Fixed, Moving, Place, Row, error_values, job_from_parts
from coatcheck.stores.sqlite.transaction import Transaction

_EVENTS = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}
_INLINE_TYPE = "application/json"


class Ending(NamedTuple):
    """How a job ends: with the counters it had and the policy that says how long its traces stay."""

    status: Status
    policy: Policy
    moving: Moving
    error: ErrorInfo | None = None
    result: ResultBody | None = None
    is_dead_letter: bool = False
    is_cancel_requested: bool = False
    cancel_reason: str | None = None

    @property
    def is_to_be_given_back(self) -> bool:
        """Whether its tenant gets back what it may have been charged: the job never started."""
        return self.moving.started_at is None and bool(self.policy.cost)


class Ended(NamedTuple):
    """A job and its end. It stands in no hot table any more."""

    place: Place
    fixed: Fixed
    ending: Ending
    at: InstantMs


class Settling(NamedTuple):
    """The outcome of an attempt whose lease is deleted, with what is needed to decide what follows from it."""

    lease: EndedLease
    outcome: Outcome
    policy: Policy
    jitter: float
    at: InstantMs


def settle_leases(transaction: Transaction, settlings: Sequence[Settling]) -> list[JobRecord]:
    """Write what follows from the end of attempts whose lease rows this transaction has just deleted."""
    limited = [settling.lease.job_id for settling in settlings if settling.policy.processing_max_s is not None]
    earlier_ms = ran_before_ms(transaction, limited)
    decided = [(settling, _decide(settling, earlier_ms.get(settling.lease.job_id, 0))) for settling in settlings]
    transaction.run_many("insert_attempt", [_attempt_row(*each) for each in decided])
    ended = [_ended(settling, finish) for settling, finish in decided if isinstance(finish, Finish)]
    requeued = [(settling, requeue) for settling, requeue in decided if isinstance(requeue, Requeue)]
    jobs = {job.id: job for job in (*end_jobs(transaction, ended), *_requeue(transaction, requeued))}
    return [jobs[settling.lease.job_id] for settling in settlings]


def end_jobs(transaction: Transaction, jobs_ended: Sequence[Ended]) -> list[JobRecord]:
    """Make open jobs final."""
    if not jobs_ended:
        return []
    expiries = [_expiries(ended.ending, ended.at) for ended in jobs_ended]
    rows = [_job_row(ended, *expiry) for ended, expiry in zip(jobs_ended, expiries, strict=True)]
    transaction.run_many("finish_jobs", rows)
    _insert_results(transaction, jobs_ended, expiries)
    give_back(transaction, [ended.place for ended in jobs_ended if ended.ending.is_to_be_given_back])
    deadlines = [(ended.fixed.deadline_at, ended.place.job_id) for ended in jobs_ended if ended.fixed.deadline_at]
    transaction.run_many("delete_deadlines", deadlines)
    if any(ended.ending.is_dead_letter for ended in jobs_ended):
        transaction.fault_point("dead-lettered")
    jobs = [_final_job(ended, *expiry) for ended, expiry in zip(jobs_ended, expiries, strict=True)]
    for status in dict.fromkeys(job.status for job in jobs):
        transaction.tell(_EVENTS[status], [job for job in jobs if job.status is status])
    for job in jobs:
        transaction.hint(WakeUpKind.CHANGED, job.id)
    return jobs


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


def is_excused(transaction: Transaction, tenant: str, ending: Ending, now: InstantMs) -> bool:
    """Whether a job that was not started in time may start all the same: its tenant was in quarantine meanwhile."""
    limit_s = ending.policy.queue_limit_s
    if ending.error is not NEVER_STARTED or limit_s is None:
        return False
    return transaction.row("was_restored", tenant=tenant, since=now - math.ceil(limit_s * 1000)) is not None


def _decide(settling: Settling, earlier_ms: int) -> Finish | Requeue:
    lease = settling.lease
    tally = Tally(
        attempt=lease.attempt,
        counted_attempts=lease.counted_attempts,
        max_attempts=lease.max_attempts,
        crashes=lease.crashes,
        is_alone=bool(lease.is_alone),
        deadline_at=lease.deadline_at,
        is_cancel_requested=bool(lease.cancel_requested),
        ran_ms=earlier_ms + max(settling.at - lease.attempt_started_at, 0),
    )
    return settle(settling.outcome, tally, settling.policy, settling.at, settling.jitter)


def _ended(settling: Settling, finish: Finish) -> Ended:
    lease = settling.lease
    moving = Moving(
        available_at=lease.available_at,
        version=lease.version + 1,
        attempt=lease.attempt,
        counted_attempts=finish.counted_attempts,
        crashes=lease.crashes,
        is_alone=False,
        started_at=lease.started_at,
        updated_at=settling.at,
    )
    ending = Ending(
        finish.status,
        settling.policy,
        moving,
        error=finish.error if finish.status is Status.FAILED else None,
        result=finish.result,
        is_dead_letter=finish.is_dead_letter,
        is_cancel_requested=bool(lease.cancel_requested),
        cancel_reason=lease.cancel_reason,
    )
    return Ended(lease.place, lease.fixed, ending, settling.at)


def _requeue(transaction: Transaction, requeued: Sequence[tuple[Settling, Requeue]]) -> list[JobRecord]:
    """Make jobs wait for another start."""
    if not requeued:
        return []
    waiting = [(settling.lease.place, _waiting(settling, requeue)) for settling, requeue in requeued]
    put_waiting(transaction, waiting, max(settling.at for settling, _ in requeued))
    transaction.fault_point("retry-scheduled")
    jobs = [
        job_from_parts(place, settling.lease.fixed, moving, Status.QUEUED)
        for (settling, _), (place, moving) in zip(requeued, waiting, strict=True)
    ]
    transaction.tell(EventType.REQUEUED, jobs)
    for job in jobs:
        transaction.hint(WakeUpKind.CHANGED, job.id)
    return jobs


def _waiting(settling: Settling, requeue: Requeue) -> Moving:
    lease = settling.lease
    return Moving(
        available_at=requeue.available_at,
        version=lease.version + 1,
        attempt=lease.attempt,
        counted_attempts=requeue.counted_attempts,
        crashes=requeue.crashes,
        is_alone=requeue.is_alone,
        started_at=lease.started_at,
        updated_at=settling.at,
    )


def _final_job(ended: Ended, expires_at: InstantMs, result_expires_at: InstantMs | None) -> JobRecord:
    ending = ended.ending
    return job_from_parts(
        ended.place,
        ended.fixed,
        ending.moving,
        ending.status,
        finished_at=ended.at,
        expires_at=expires_at,
        result_expires_at=result_expires_at,
        cancel_requested=ending.is_cancel_requested,
        cancel_reason=ending.cancel_reason,
        error=ending.error,
        dead_lettered_at=ended.at if ending.is_dead_letter else None,
        result=_info(ending.result, result_expires_at, ended.at),
    )


def _expiries(ending: Ending, now: InstantMs) -> tuple[InstantMs, InstantMs | None]:
    """When the job and its result go."""
    retention = ending.policy.retention
    match ending.status:
        case Status.SUCCEEDED:
            kept_s = retention.succeeded_s
        case Status.FAILED:
            kept_s = retention.failed_s
        case _:
            kept_s = retention.cancelled_s
    expires_at = now + round(kept_s * 1000)
    if ending.result is None:
        return expires_at, None
    return expires_at, min(now + round(retention.result_s * 1000), expires_at)


def _info(result: ResultBody | None, result_expires_at: InstantMs | None, now: InstantMs) -> ResultInfo | None:
    if result is None or result_expires_at is None:
        return None
    size = len(result.body)
    is_inline = result.content_type == _INLINE_TYPE and size <= limits.INLINE_RESULT_BYTES_MAX
    return ResultInfo(result.content_type, size, result.body if is_inline and result_expires_at > now else None)


def _job_row(ended: Ended, expires_at: InstantMs, result_expires_at: InstantMs | None) -> Row:
    ending = ended.ending
    moving, result = ending.moving, ending.result
    return (
        ended.place.job_id,
        ending.status.value,
        moving.version,
        moving.attempt,
        moving.counted_attempts,
        moving.started_at,
        moving.available_at,
        ended.at,
        expires_at,
        result_expires_at,
        expires_at + round(ending.policy.retention.tombstone_s * 1000),
        int(ending.is_cancel_requested),
        ending.cancel_reason,
        ended.at if ending.is_dead_letter else None,
        *error_values(ending.error),
        result.content_type if result else None,
        len(result.body) if result else None,
    )


def _attempt_row(settling: Settling, settlement: Finish | Requeue) -> Row:
    lease = settling.lease
    return (
        lease.job_id,
        lease.attempt,
        lease.attempt_started_at,
        settling.at,
        settlement.outcome,
        *error_values(settlement.error),
    )


def _insert_results(
    transaction: Transaction,
    jobs_ended: Sequence[Ended],
    expiries: Sequence[tuple[InstantMs, InstantMs | None]],
) -> None:
    rows: list[Row] = []
    for ended, (expires_at, result_expires_at) in zip(jobs_ended, expiries, strict=True):
        result = ended.ending.result
        if result is not None:
            own_expiry = result_expires_at if result_expires_at != expires_at else None
            rows.append((ended.place.job_id, result.content_type, result.file_name, own_expiry, result.body))
    if rows:
        transaction.run_many("insert_result", rows)
        transaction.fault_point("result-stored-before-commit")
