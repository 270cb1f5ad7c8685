"""What clients and operators do to jobs that exist: cancel, erase, redrive."""

from msgspec import structs

from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.records import (
    CancelAnswer,
    CancelDisposition,
    EraseDisposition,
    RedriveRefusal,
    Redriving,
    Tombstone,
    WakeUpKind,
)
from coatcheck.stores.sqlite.acceptance import insert_jobs
from coatcheck.stores.sqlite.audit import write_audit
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import take_waiting
from coatcheck.stores.sqlite.reading import find
from coatcheck.stores.sqlite.retention import bury
from coatcheck.stores.sqlite.rows import Place, fixed_of
from coatcheck.stores.sqlite.settling import Ended, Ending, end_jobs
from coatcheck.stores.sqlite.transaction import Transaction


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
        def act(transaction: Transaction) -> CancelAnswer | Tombstone | None:
            return _cancel(transaction, (tenant, job_id), reason, policies, now, entry)

        return await self._writer.run(act)

    async def erase_job(self, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
        return await self._writer.run(lambda transaction: _erase(transaction, tenant, job_id, now))

    async def redrive_job(self, redriving: Redriving, entry: AuditEntry | None = None) -> JobRecord | RedriveRefusal:
        return await self._writer.run(lambda transaction: _redrive(transaction, redriving, entry))


def _cancel(
    transaction: Transaction,
    named: tuple[str, str],
    reason: str | None,
    policies: Policies,
    now: InstantMs,
    entry: AuditEntry | None,
) -> CancelAnswer | Tombstone | None:
    job = find(transaction, *named, now)
    if job is None or isinstance(job, Tombstone):
        return job
    if job.status is Status.CANCELLED:
        return CancelAnswer(CancelDisposition.ALREADY_CANCELLED, job)
    if job.status.is_final:
        return CancelAnswer(CancelDisposition.ALREADY_FINISHED, job)
    place = Place(job.operation, job.tenant, job.priority, job.id)
    moving = take_waiting(transaction, place)
    if moving is not None:
        policy = policies.of(job.operation)
        moved = moving.changed(now)
        ending = Ending(Status.CANCELLED, policy, moved, is_cancel_requested=True, cancel_reason=reason)
        (ended,) = end_jobs(transaction, [Ended(place, fixed_of(job), ending, now)])
        write_audit(transaction, entry)
        return CancelAnswer(CancelDisposition.CANCELLED, ended)
    if transaction.run("request_cancel", job_id=job.id, reason=reason, now=now):
        job = structs.replace(job, version=job.version + 1, updated_at=now, cancel_requested=True, cancel_reason=reason)
        transaction.hint(WakeUpKind.CHANGED, job.id)
        write_audit(transaction, entry)
    transaction.fault_point("cancel-stored")
    transaction.hint(WakeUpKind.CANCEL, job.id)
    return CancelAnswer(CancelDisposition.REQUESTED, job)


def _erase(transaction: Transaction, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
    job = find(transaction, tenant, job_id, now)
    if job is None:
        return None
    if isinstance(job, Tombstone):
        return EraseDisposition.ALREADY_GONE
    if not job.status.is_final:
        return EraseDisposition.NOT_FINISHED
    bury(transaction, job_id, now)
    transaction.hint(WakeUpKind.CHANGED, job_id)
    return EraseDisposition.ERASED


def _redrive(transaction: Transaction, redriving: Redriving, entry: AuditEntry | None) -> JobRecord | RedriveRefusal:
    now = redriving.created_at
    job = find(transaction, redriving.tenant, redriving.job_id, now)
    if not isinstance(job, JobRecord):
        return RedriveRefusal.NOT_FOUND
    if job.status is not Status.FAILED:
        return RedriveRefusal.NOT_FAILED
    if job.redriven_as is not None:
        again = find(transaction, redriving.tenant, job.redriven_as, now)
        return again if isinstance(again, JobRecord) else RedriveRefusal.NOT_FOUND
    named = {"job_id": job.id, "tenant": job.tenant, "new_job_id": redriving.new_job_id}
    if not transaction.run("mark_redriven", now=now, **named):
        return RedriveRefusal.TENANT_REVOKED
    transaction.hint(WakeUpKind.CHANGED, job.id)
    transaction.fault_point("redrive-half")
    new_job = _again(job, redriving)
    insert_jobs(transaction, [new_job], keys_end={})
    if redriving.payload is None:
        transaction.run("copy_payload", job_id=job.id, new_job_id=new_job.id)
    else:
        transaction.run_many("insert_payload", [(new_job.id, redriving.payload)])
    write_audit(transaction, entry)
    return new_job


def _again(job: JobRecord, redriving: Redriving) -> JobRecord:
    """A new life for a failed job: the same request and chain, none of its history."""
    now = redriving.created_at
    return structs.replace(
        job,
        id=redriving.new_job_id,
        status=Status.QUEUED,
        version=1,
        attempt=0,
        counted_attempts=0,
        created_at=now,
        updated_at=now,
        available_at=now,
        started_at=None,
        finished_at=None,
        deadline_at=None,
        expires_at=None,
        result_expires_at=None,
        cancel_requested=False,
        cancel_reason=None,
        error=None,
        dead_lettered_at=None,
        redrive_of=job.id,
        redriven_as=None,
    )
