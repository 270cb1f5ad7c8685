"""How a job of the reference model moves from place to place, with all that must move along."""

from msgspec import structs

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.events import EventType, event_data
from coatcheck.core.job import AttemptRecord, InstantMs, ResultInfo
from coatcheck.core.outcome import NEVER_STARTED, OVERDUE
from coatcheck.core.states import Status
from coatcheck.store.records import Tombstone
from coatcheck.testing.model_endings import Verdict
from coatcheck.testing.model_state import ModelJob, ModelState, ModelTombstone, Place, Told

_EVENTS = {
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
}


def begin(state: ModelState, job: ModelJob, now: InstantMs) -> None:
    """A new job takes its place."""
    state.jobs[job.record.id] = job
    put_waiting(state, job, now)
    tell(state, job, EventType.ACCEPTED)


def put_waiting(state: ModelState, job: ModelJob, now: InstantMs) -> None:
    """Ready if its time has come, else scheduled."""
    operation, tenant = job.line
    if job.record.available_at <= now:
        job.place = Place.READY
        state.turns_of(operation).join(tenant)
    else:
        job.place = Place.SCHEDULED


def take_waiting(state: ModelState, job: ModelJob, *, in_turn: bool) -> None:
    """A job that waits leaves its place, in its tenant's turn or out of turn; the caller puts it into another."""
    operation, tenant = job.line
    if job.place is Place.READY and in_turn:
        state.turns_of(operation).serve(tenant)
    elif job.place is Place.READY:
        state.turns_of(operation).leave(tenant)
    job.place = Place.ENDED


def lateness(state: ModelState, job: ModelJob, now: InstantMs) -> ErrorInfo | None:
    """With which error a waiting job ends because it was not started in time; None: it may still start."""
    record, limit_s = job.record, state.policies[job.record.operation].queue_limit_s
    if record.deadline_at is not None and record.deadline_at <= now:
        return OVERDUE
    if job.place is Place.READY and record.attempt == 0 and limit_s is not None:
        return NEVER_STARTED if record.available_at + limit_s * 1000 <= now else None
    return None


def settle(state: ModelState, job: ModelJob, verdict: Verdict, now: InstantMs) -> None:
    """A running job's attempt ended like this."""
    record = job.record
    job.attempts.append(AttemptRecord(record.attempt, job.attempt_started_at, now, verdict.outcome, verdict.error))
    job.lease, job.crashes, job.is_alone = None, verdict.crashes, verdict.is_alone
    if verdict.status is not None:
        end(state, job, verdict, now)
        return
    job.record = structs.replace(
        record,
        status=Status.QUEUED,
        version=record.version + 1,
        counted_attempts=verdict.counted,
        available_at=verdict.available_at,
        updated_at=now,
        progress=None,
    )
    put_waiting(state, job, now)
    tell(state, job, EventType.REQUEUED)


def end(state: ModelState, job: ModelJob, verdict: Verdict, now: InstantMs) -> None:
    """A job that stands nowhere any more is final."""
    record, result, status = job.record, verdict.result, verdict.status
    if record.started_at is None and state.policies[record.operation].cost:
        state.costs.give_back(record)
    assert status is not None, "the caller has a final verdict"
    retention = state.policies[record.operation].retention
    kept_s = {
        Status.SUCCEEDED: retention.succeeded_s,
        Status.FAILED: retention.failed_s,
        Status.CANCELLED: retention.cancelled_s,
    }[status]
    expires_at = now + round(kept_s * 1000)
    result_expires_at = min(expires_at, now + round(retention.result_s * 1000))
    job.place, job.result = Place.ENDED, result
    job.tombstone_until = max(expires_at + round(retention.tombstone_s * 1000), job.key_expires_at or 0)
    job.record = structs.replace(
        record,
        status=status,
        version=record.version + 1,
        counted_attempts=verdict.counted,
        updated_at=now,
        finished_at=now,
        expires_at=expires_at,
        result_expires_at=result_expires_at if result is not None else None,
        progress=None,
        error=verdict.error if status is Status.FAILED else None,
        dead_lettered_at=now if verdict.is_dead_letter else None,
        result=None if result is None else ResultInfo(result.content_type, len(result.body)),
    )
    tell(state, job, _EVENTS[status])


def bury(state: ModelState, job: ModelJob, now: InstantMs) -> None:
    """A finished job is replaced by its tombstone; effects go with the last job of their chain."""
    record = job.record
    assert record.expires_at is not None, "only finished jobs are buried"
    del state.jobs[record.id]
    state.costs.forget_job(record.id)
    tombstone = Tombstone(record.id, record.operation, min(now, record.expires_at))
    state.tombstones[record.id] = ModelTombstone(tombstone, record.tenant, job.tombstone_until)
    if not any(other.record.chain_id == record.chain_id for other in state.jobs.values()):
        for chain_id, name in [scope for scope in state.effects if scope[0] == record.chain_id]:
            del state.effects[chain_id, name]


def tell(state: ModelState, job: ModelJob, event: EventType) -> None:
    """An entry for the outbox."""
    state.outbox.append(Told(event, job.record, event_data(job.record)))
