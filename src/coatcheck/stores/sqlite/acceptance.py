"""Accepting jobs: the keys are looked up and everything is written in one commit, all jobs of a batch together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from coatcheck.core.costs import OverBudget, Purses
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.quotas import Places
from coatcheck.core.states import Status
from coatcheck.store.records import (
    Accepted,
    Disposition,
    KeyConflict,
    KeyOfExpiredJob,
    QueueFull,
    Replayed,
    Submission,
)
from coatcheck.stores.sqlite.costs import charge, read_purses
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import put_waiting
from coatcheck.stores.sqlite.readers import Snapshot
from coatcheck.stores.sqlite.reading import find
from coatcheck.stores.sqlite.rows import Moving, Place, Row
from coatcheck.stores.sqlite.transaction import Transaction

_KEYS_JOB = 5
_KEY_COLUMNS = 3
_JOB_IDS: msgspec.json.Decoder[list[str]] = msgspec.json.Decoder(list[str])
_COUNTS: msgspec.json.Decoder[list[tuple[str, str, int]]] = msgspec.json.Decoder(list[tuple[str, str, int]])


class _Room(NamedTuple):
    """What is taken of what is limited: places in queues, and budgets."""

    places: Places
    purses: Purses


class Acceptances(Facet):
    """The engine's AcceptanceStore."""

    async def accept_job(self, submission: Submission) -> Disposition:
        return await self._writer.run_bulk(accept, submission)

    async def find_earlier(self, submission: Submission) -> Disposition | None:
        if submission.key is None:
            return None
        return self._readers.here(lambda snapshot: _find_earlier(snapshot, submission))


def accept(transaction: Transaction, submissions: Sequence[Submission]) -> Sequence[Disposition]:
    """Write the new jobs, in their order as far as there is room; for those whose key is known, find the jobs the
    keys stand for."""
    reserved = _reserve_keys(transaction, submissions)
    room = _Room(_count_queued(transaction, submissions), read_purses(transaction, submissions))
    answers: dict[str, Disposition] = {}
    new = []
    for submission in submissions:
        if submission.key is None or submission.job_id in reserved:
            refusal = _enter(room, submission)
            if refusal is None:
                new.append(submission)
            else:
                answers[submission.job_id] = refusal
    _free_keys(transaction, [submission for submission in submissions if submission.job_id in answers])
    answers |= {job.id: Accepted(job) for job in _insert_new(transaction, new)}
    return [
        answers.get(submission.job_id) or _accept_known_key(transaction, submission, room) for submission in submissions
    ]


def insert_jobs(transaction: Transaction, jobs: Sequence[JobRecord], keys_end: Mapping[str, InstantMs]) -> None:
    """Write queued jobs' records and put them where they wait; their payloads are the caller's.

    `keys_end` says until when an idempotency key stands for a job, where there is one.
    """
    transaction.run_many("insert_job", [_job_row(job, keys_end.get(job.id)) for job in jobs])
    deadlines = [(job.deadline_at, job.id) for job in jobs if job.deadline_at is not None]
    transaction.run_many("insert_deadline", deadlines)
    put_waiting(transaction, [(_place(job), _unstarted(job)) for job in jobs], max(job.created_at for job in jobs))
    transaction.tell(EventType.ACCEPTED, jobs)


def _reserve_keys(transaction: Transaction, submissions: Sequence[Submission]) -> set[str]:
    """The ids of the jobs whose key nobody used before, which is theirs now."""
    rows = [_key_row(submission) for submission in submissions if submission.key is not None]
    count = transaction.run_many("insert_key", rows)
    if count == 0:
        return set()
    transaction.fault_point("key-reserved")
    if count < len(rows):
        # Some were known: which are not, only their rows tell.
        wanted = [(tenant, operation, key, job_id) for tenant, operation, key, _, _, job_id, _ in rows]
        return set(transaction.read_many("own_keys", wanted, _JOB_IDS))
    return {row[_KEYS_JOB] for row in rows}


def _free_keys(transaction: Transaction, refused: Sequence[Submission]) -> None:
    """Keys that were reserved for jobs that are refused now."""
    transaction.run_many(
        "free_keys", [_key_row(submission)[:_KEY_COLUMNS] for submission in refused if submission.key is not None]
    )


def _count_queued(transaction: Transaction, submissions: Sequence[Submission]) -> Places:
    """How many jobs are queued, wherever there is a limit."""
    scopes = {limit.scope_of(submission.tenant) for submission in submissions for limit in submission.limits}
    rows = transaction.read_many("count_queued", sorted(scopes), _COUNTS) if scopes else []
    return Places({(tenant, operation): count for tenant, operation, count in rows})


def _enter(room: _Room, submission: Submission) -> QueueFull | OverBudget | None:
    """Take a place in the queue and what is charged out of the budgets, or say what does not allow it."""
    (places, purses), tenant = room, submission.tenant
    limit = places.met(tenant, submission.limits)
    if limit is not None:
        return QueueFull(limit, places.taken(limit.scope_of(tenant)))
    over = purses.exceeded(tenant, submission.charges)
    if over is None:
        places.take(tenant, submission.limits)
        purses.take(tenant, submission.charges)
    return over


def _insert_new(transaction: Transaction, submissions: Sequence[Submission]) -> Sequence[JobRecord]:
    if not submissions:
        return ()
    jobs = [_new_job(submission) for submission in submissions]
    keys_end = {submission.job_id: submission.key.expires_at for submission in submissions if submission.key}
    insert_jobs(transaction, jobs, keys_end)
    transaction.run_many("insert_payload", [(submission.job_id, submission.payload) for submission in submissions])
    charge(transaction, submissions)
    return jobs


def _accept_known_key(transaction: Transaction, submission: Submission, room: _Room) -> Disposition:
    earlier = _find_earlier(transaction, submission)
    if earlier is not None:
        return earlier
    refusal = _enter(room, submission)
    if refusal is not None:
        return refusal
    transaction.run_many("put_key", [_key_row(submission)])
    return Accepted(_insert_new(transaction, [submission])[0])


def _find_earlier(source: Transaction | Snapshot, submission: Submission) -> Disposition | None:
    """What the key stands for, or None where its window is over, or it was reserved for a neighbour that is refused."""
    key = submission.key
    assert key is not None, "only a key can be known"
    row = source.row("find_key", tenant=submission.tenant, operation=submission.operation, key=key.key)
    if row is None:
        return None
    algorithm, fingerprint, job_id, expires_at = row
    if expires_at <= submission.created_at:
        return None
    if (algorithm, fingerprint) != (key.algorithm, key.fingerprint):
        return KeyConflict(job_id)
    job = find(source, submission.tenant, job_id, submission.created_at)
    return Replayed(job) if isinstance(job, JobRecord) else KeyOfExpiredJob(job_id)


def _new_job(submission: Submission) -> JobRecord:
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


def _place(job: JobRecord) -> Place:
    return Place(job.operation, job.tenant, job.priority, job.id)


def _unstarted(job: JobRecord) -> Moving:
    return Moving(job.available_at, job.version, 0, 0, 0, is_alone=False, started_at=None, updated_at=job.created_at)


def _job_row(job: JobRecord, key_expires_at: InstantMs | None) -> Row:
    return (
        job.id,
        job.tenant,
        job.operation,
        job.operation_version,
        job.priority,
        job.max_attempts,
        job.created_at,
        job.available_at,
        job.deadline_at,
        job.correlation_id,
        job.traceparent,
        job.chain_id,
        job.redrive_of,
        key_expires_at,
        job.updated_at,
    )


def _key_row(submission: Submission) -> Row:
    key = submission.key
    assert key is not None, "the caller has looked"
    return (
        submission.tenant,
        submission.operation,
        key.key,
        key.algorithm,
        key.fingerprint,
        submission.job_id,
        key.expires_at,
    )
