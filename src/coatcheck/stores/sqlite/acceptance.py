"""Accepting a job: its key is looked up and everything is written in one commit."""

from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.store.records import (
    Accepted,
    Disposition,
    IdempotencyKey,
    KeyConflict,
    KeyOfExpiredJob,
    Replayed,
    Submission,
)
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import Place, put_waiting
from coatcheck.stores.sqlite.rows import Moving
from coatcheck.stores.sqlite.transaction import Transaction


class Acceptances(Facet):
    """The engine's AcceptanceStore."""

    async def accept_job(self, submission: Submission) -> Disposition:
        return await self._writer.run(lambda transaction: accept(transaction, submission))


def accept(transaction: Transaction, submission: Submission) -> Disposition:
    """Find the job the key stands for, or write the new one."""
    key = submission.key
    if key is not None:
        earlier = _find_earlier(transaction, submission, key)
        if earlier is not None:
            return earlier
        transaction.run(
            "put_key",
            tenant=submission.tenant,
            operation=submission.operation,
            key=key.key,
            algorithm=key.algorithm,
            fingerprint=key.fingerprint,
            job_id=submission.job_id,
            expires_at=key.expires_at,
        )
        transaction.fault_point("key-reserved")
    job = new_job(submission)
    insert(transaction, job, key.expires_at if key else None)
    transaction.run("insert_payload", job_id=job.id, body=submission.payload)
    return Accepted(job)


def new_job(submission: Submission) -> JobRecord:
    """The record of a job that was just accepted."""
    return JobRecord(
        id=submission.job_id,
        tenant=submission.tenant,
        operation=submission.operation,
        operation_version=submission.operation_version,
        status=Status.QUEUED,
        version=1,
        attempt=0,
        counted_attempts=0,
        max_attempts=submission.max_attempts,
        priority=submission.priority,
        created_at=submission.created_at,
        updated_at=submission.created_at,
        available_at=submission.available_at,
        correlation_id=submission.correlation_id,
        chain_id=submission.job_id,
        deadline_at=submission.deadline_at,
        traceparent=submission.traceparent,
    )


def insert(transaction: Transaction, job: JobRecord, key_expires_at: InstantMs | None) -> None:
    """Write a queued job's record and put it where it waits; its payload is the caller's."""
    transaction.run(
        "insert_job",
        id=job.id,
        tenant=job.tenant,
        operation=job.operation,
        operation_version=job.operation_version,
        priority=job.priority,
        max_attempts=job.max_attempts,
        created_at=job.created_at,
        available_at=job.available_at,
        deadline_at=job.deadline_at,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
        chain_id=job.chain_id,
        redrive_of=job.redrive_of,
        key_expires_at=key_expires_at,
    )
    if job.deadline_at is not None:
        transaction.run("insert_deadline", deadline_at=job.deadline_at, job_id=job.id)
    place = Place(job.operation, job.tenant, job.priority, job.id)
    moving = Moving(job.available_at, 1, 0, 0, 0, is_alone=False, started_at=None, updated_at=job.created_at)
    put_waiting(transaction, place, moving, job.created_at)
    transaction.tell(EventType.ACCEPTED, job)


def _find_earlier(transaction: Transaction, submission: Submission, key: IdempotencyKey) -> Disposition | None:
    row = transaction.row("find_key", tenant=submission.tenant, operation=submission.operation, key=key.key)
    if row is None:
        return None
    algorithm, fingerprint, job_id, expires_at = row
    if expires_at <= submission.created_at:
        return None
    if (algorithm, fingerprint) != (key.algorithm, key.fingerprint):
        return KeyConflict(job_id)
    job = transaction.job(job_id, submission.created_at)
    if job is None or (job.expires_at is not None and job.expires_at <= submission.created_at):
        return KeyOfExpiredJob(job_id)
    return Replayed(job)
