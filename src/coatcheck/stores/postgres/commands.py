"""What clients and operators do to jobs that exist: cancel, erase, redrive."""

from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.policy import Policies
from coatcheck.core.starts import Turn
from coatcheck.core.states import Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import (
    CancelAnswer,
    CancelDisposition,
    EraseDisposition,
    RedriveRefusal,
    Redriving,
    Tombstone,
    WakeUpKind,
)
from coatcheck.stores.postgres.audit import write_audit
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.inbox import promote_one
from coatcheck.stores.postgres.queue import leave_turns, put_waiting, take_waiting
from coatcheck.stores.postgres.reading import find
from coatcheck.stores.postgres.retention import bury
from coatcheck.stores.postgres.rows import Fixed, Moving, Place, fixed_of, job_from_parts, plain
from coatcheck.stores.postgres.settling import Ending, Endings
from coatcheck.stores.postgres.transaction import Transaction

_LOOKS_MAX = 10


class Commands(Facet):
    """The engine's CommandStore."""

    async def cancel_job(
        self,
        tenant: str,
        job_id: str,
        reason: str | None,
        policies: Policies,
        now: InstantMs,
        entry: AuditEntry | None = None,
    ) -> CancelAnswer | Tombstone | None:
        if "\0" in job_id:
            return None
        cancelling = _Cancelling((tenant, job_id), plain(reason), policies, now, entry)
        answer = await self._transactions.run(cancelling.run)
        await leave_turns(self._transactions, cancelling.turns)
        return answer

    async def erase_job(self, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
        if "\0" in job_id:
            return None
        return await self._transactions.run(lambda transaction: _erase(transaction, tenant, job_id, now))

    async def redrive_job(self, redriving: Redriving, entry: AuditEntry | None = None) -> JobRecord | RedriveRefusal:
        if "\0" in redriving.job_id:
            return RedriveRefusal.NOT_FOUND
        return await self._transactions.run(lambda transaction: _redrive(transaction, redriving, entry))


class _Cancelling:
    """One request to cancel. `turns`: those that lost a job by it."""

    def __init__(
        self,
        named: tuple[str, str],
        reason: str | None,
        policies: Policies,
        now: InstantMs,
        entry: AuditEntry | None,
    ) -> None:
        self._named = named
        self._reason = reason
        self._policies = policies
        self._now = now
        self._entry = entry
        self.turns: set[Turn] = set()

    async def run(self, transaction: Transaction) -> CancelAnswer | Tombstone | None:
        """Cancel the job wherever it is. It may move on while it is looked for, so that it is nowhere: look again. One
        that is still in the inbox is moved on first."""
        for _ in range(_LOOKS_MAX):
            job = await find(transaction, *self._named, self._now)
            if job is None or isinstance(job, Tombstone):
                return job
            if job.status is Status.CANCELLED:
                return CancelAnswer(CancelDisposition.ALREADY_CANCELLED, job)
            if job.status.is_final:
                return CancelAnswer(CancelDisposition.ALREADY_FINISHED, job)
            answer = await self._end_waiting(transaction, job) or await self._ask(transaction, job)
            if answer is not None:
                return answer
            await promote_one(transaction, self._named, self._policies, self._now)
        raise StoreUnavailable("The job moves too fast to be cancelled.")

    async def _end_waiting(self, transaction: Transaction, job: JobRecord) -> CancelAnswer | None:
        place = Place(job.operation, job.tenant, job.priority, job.id)
        taken, self.turns = await take_waiting(transaction, [place])
        if job.id not in taken:
            return None
        moved = taken[job.id].changed(self._now)
        policy = self._policies.of(job.operation)
        ending = Ending(Status.CANCELLED, policy, moved, is_cancel_requested=True, cancel_reason=self._reason)
        endings = Endings(transaction)
        cancelled = endings.end_job(place, fixed_of(job), ending, self._now)
        await endings.write()
        await write_audit(transaction, self._entry)
        return CancelAnswer(CancelDisposition.CANCELLED, cancelled)

    async def _ask(self, transaction: Transaction, job: JobRecord) -> CancelAnswer | None:
        if await transaction.run("request_cancel", job.id, self._reason, self._now):
            transaction.hint(WakeUpKind.CHANGED, job.id)
            await write_audit(transaction, self._entry)
        elif not (await transaction.rows("has_lease", job.id))[0][0]:
            return None
        transaction.fault_point("cancel-stored")
        transaction.hint(WakeUpKind.CANCEL, job.id)
        asked = await find(transaction, *self._named, self._now)
        assert isinstance(asked, JobRecord), "a job with a lease is there"
        return CancelAnswer(CancelDisposition.REQUESTED, asked)


async def _erase(transaction: Transaction, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
    job = await find(transaction, tenant, job_id, now)
    if job is None:
        return None
    if isinstance(job, Tombstone):
        return EraseDisposition.ALREADY_GONE
    if not job.status.is_final:
        return EraseDisposition.NOT_FINISHED
    if not await bury(transaction, [job_id], now):
        return EraseDisposition.ALREADY_GONE
    transaction.hint(WakeUpKind.CHANGED, job_id)
    return EraseDisposition.ERASED


async def _redrive(
    transaction: Transaction, redriving: Redriving, entry: AuditEntry | None
) -> JobRecord | RedriveRefusal:
    now = redriving.created_at
    job = await find(transaction, redriving.tenant, redriving.job_id, now)
    if not isinstance(job, JobRecord):
        return RedriveRefusal.NOT_FOUND
    if job.status is not Status.FAILED:
        return RedriveRefusal.NOT_FAILED
    if job.redriven_as is None:
        named = (job.id, job.tenant, redriving.new_job_id, now)
        if await transaction.rows("mark_redriven", *named):
            new_job = await _run_again(transaction, job, redriving)
            await write_audit(transaction, entry)
            return new_job
        # Another redrive, or an erasure, came first, or the tenant is revoked: what is there now decides.
        job = await find(transaction, redriving.tenant, redriving.job_id, now)
        if not isinstance(job, JobRecord):
            return RedriveRefusal.NOT_FOUND
        if job.redriven_as is None:
            return RedriveRefusal.TENANT_REVOKED
    again = await find(transaction, redriving.tenant, job.redriven_as, now)
    return again if isinstance(again, JobRecord) else RedriveRefusal.NOT_FOUND


async def _run_again(transaction: Transaction, job: JobRecord, redriving: Redriving) -> JobRecord:
    """A new life for a failed job: the same request and chain, none of its history."""
    now = redriving.created_at
    transaction.hint(WakeUpKind.CHANGED, job.id)
    transaction.fault_point("redrive-half")
    place = Place(job.operation, job.tenant, job.priority, redriving.new_job_id)
    fixed = Fixed(
        operation_version=job.operation_version,
        max_attempts=job.max_attempts,
        created_at=now,
        deadline_at=None,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
        chain_id=job.chain_id,
        redrive_of=job.id,
    )
    await transaction.run(
        "insert_job",
        place.job_id,
        place.tenant,
        place.operation,
        fixed.operation_version,
        place.priority,
        fixed.max_attempts,
        now,
        now,
        fixed.correlation_id,
        fixed.traceparent,
        fixed.chain_id,
        fixed.redrive_of,
        redriving.payload,
    )
    unstarted = Moving(now, 1, 0, 0, 0, is_alone=False, started_at=None, updated_at=now)
    await put_waiting(transaction, [(place, unstarted, now)])
    new_job = job_from_parts(place, fixed, unstarted, Status.QUEUED)
    await transaction.tell([(EventType.ACCEPTED, new_job)])
    return new_job
