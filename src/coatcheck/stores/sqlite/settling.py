"""Ending: what follows from an outcome, written together with its attempt, its result and its outbox entry."""

from dataclasses import dataclass

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.outcome import Finish, Outcome, Requeue, ResultBody, Tally, settle
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.queue import Place, put_waiting
from coatcheck.stores.sqlite.rows import EndedLease, Moving, error_values
from coatcheck.stores.sqlite.transaction import Transaction

_EVENTS = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}


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
    max_attempts, deadline_at, _ = transaction.rows("open_job", job_id=job_id)[0]
    tally = Tally(
        attempt=lease.attempt,
        counted_attempts=lease.counted_attempts,
        max_attempts=max_attempts,
        crashes=lease.crashes,
        is_alone=bool(lease.is_alone),
        deadline_at=deadline_at,
        is_cancel_requested=bool(lease.cancel_requested),
    )
    settlement = settle(settling.outcome, tally, settling.policy, now, settling.jitter)
    _insert_attempt(transaction, job_id, lease, settlement, now)
    match settlement:
        case Finish():
            ending = Ending(
                settlement.status,
                settling.policy,
                _last_moving(lease, settlement, now),
                error=settlement.error if settlement.status is Status.FAILED else None,
                result=settlement.result,
                is_dead_letter=settlement.is_dead_letter,
                is_cancel_requested=bool(lease.cancel_requested),
                cancel_reason=lease.cancel_reason,
            )
            return end_job(transaction, job_id, ending, now)
        case Requeue():
            return _requeue(transaction, job_id, lease, settlement, now)


def end_job(transaction: Transaction, job_id: str, ending: Ending, now: InstantMs) -> JobRecord:
    """Make an open job final. It stands in no hot table any more when this is called."""
    retention, moving, result = ending.policy.retention, ending.moving, ending.result
    _, deadline_at, key_expires_at = transaction.rows("open_job", job_id=job_id)[0]
    kept_s = {
        Status.SUCCEEDED: retention.succeeded_s,
        Status.FAILED: retention.failed_s,
        Status.CANCELLED: retention.cancelled_s,
    }[ending.status]
    expires_at = now + round(kept_s * 1000)
    result_expires_at = min(now + round(retention.result_s * 1000), expires_at) if result else None
    transaction.run(
        "finish_job",
        job_id=job_id,
        status=ending.status.value,
        version=moving.version + 1,
        attempt=moving.attempt,
        counted_attempts=moving.counted_attempts,
        started_at=moving.started_at,
        available_at=moving.available_at,
        now=now,
        expires_at=expires_at,
        result_expires_at=result_expires_at,
        # A tombstone lives at least as long as the key that may still point to it.
        tombstone_until=max(expires_at + round(retention.tombstone_s * 1000), key_expires_at or 0),
        cancel_requested=int(ending.is_cancel_requested),
        cancel_reason=ending.cancel_reason,
        dead_lettered_at=now if ending.is_dead_letter else None,
        result_type=result.content_type if result else None,
        result_bytes=len(result.body) if result else None,
        **error_values(ending.error),
    )
    if result is not None and result_expires_at is not None:
        own_expiry = result_expires_at if result_expires_at < expires_at else None
        _insert_result(transaction, job_id, result, own_expiry)
    if deadline_at is not None:
        transaction.run("delete_deadline", deadline_at=deadline_at, job_id=job_id)
    if ending.is_dead_letter:
        transaction.fault_point("dead-lettered")
    return changed(transaction, job_id, _EVENTS[ending.status], now)


def changed(transaction: Transaction, job_id: str, event: EventType | None, now: InstantMs) -> JobRecord:
    """Read a job back after a change, tell of it, and hand it out."""
    job = transaction.job(job_id, now)
    assert job is not None, "a job changed in this transaction is there"
    if event is not None:
        transaction.tell(event, job)
    transaction.hint(WakeUpKind.CHANGED, job_id)
    return job


def _last_moving(lease: EndedLease, finish: Finish, now: InstantMs) -> Moving:
    return Moving(
        available_at=lease.available_at,
        version=lease.version,
        attempt=lease.attempt,
        counted_attempts=finish.counted_attempts,
        crashes=lease.crashes,
        is_alone=bool(lease.is_alone),
        started_at=lease.started_at,
        updated_at=now,
    )


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


def _requeue(
    transaction: Transaction, job_id: str, lease: EndedLease, settlement: Requeue, now: InstantMs
) -> JobRecord:
    moving = Moving(
        available_at=settlement.available_at,
        version=lease.version + 1,
        attempt=lease.attempt,
        counted_attempts=settlement.counted_attempts,
        crashes=settlement.crashes,
        is_alone=settlement.is_alone,
        started_at=lease.started_at,
        updated_at=now,
    )
    put_waiting(transaction, Place(lease.operation, lease.tenant, lease.priority, job_id), moving, now)
    transaction.fault_point("retry-scheduled")
    return changed(transaction, job_id, EventType.REQUEUED, now)
