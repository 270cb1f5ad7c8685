"""The inbox: jobs come in with their caller's transaction, and are moved on into the queue as soon as it is seen."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from coatcheck.core import limits
from coatcheck.core.costs import OverBudget, units_of
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.inbox import InboxMeasure
from coatcheck.store.records import (
    Accepted,
    Disposition,
    IdempotencyKey,
    KeyConflict,
    KeyOfExpiredJob,
    QueueFull,
    Replayed,
    Submission,
)
from coatcheck.stores.postgres.acceptance import Earlier, accept_limited, answer_known, find_earlier
from coatcheck.stores.postgres.callers import run_on
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.rows import Moving, Place, Row, columns, fixed_of, inbox_values, new_job
from coatcheck.stores.postgres.settling import Ending, Endings
from coatcheck.stores.postgres.statements import sql
from coatcheck.stores.postgres.transaction import Transaction

PAYLOAD_BYTES_AT_ONCE = 8 * 1024 * 1024
_REFUSED_COLUMNS = 12
_COSTS: msgspec.json.Decoder[list[tuple[str, int]]] = msgspec.json.Decoder(list[tuple[str, int]])

_TAKEN_COLUMNS = 17


class TenantRevoked(msgspec.Struct, frozen=True):
    """The tenant gets no new work any more."""


Refusal: TypeAlias = tuple[Submission, Earlier | QueueFull | OverBudget | TenantRevoked]
"""A job that was handed in, and what its key stands for instead, or the limit it met."""


class Inbox(Facet):
    """The engine's InboxStore."""

    async def hand_in(self, connection: Any, submission: Submission) -> Disposition:
        if submission.key is not None:
            earlier = await self._transactions.run(lambda transaction: _find_earlier(transaction, submission))
            if earlier is not None:
                return earlier
        await run_on(connection, sql("hand_in"), inbox_values(submission))
        return Accepted(new_job(submission))

    async def promote_inbox(self, policies: Policies, terms: Terms, now: InstantMs, limit: int) -> int:
        # Most looks find nothing: they are to cost no more than one read.
        ((has_any,),) = await self._transactions.read("look_into_inbox")
        if not has_any:
            return 0

        async def act(transaction: Transaction) -> int:
            rows = await transaction.rows("take_inbox", limit, PAYLOAD_BYTES_AT_ONCE)
            await promote_rows(transaction, rows, policies, terms, now)
            return len(rows)

        return await self._transactions.run(act)

    async def measure_inbox(self) -> InboxMeasure:
        ((waiting, oldest_at),) = await self._transactions.read("measure_inbox", limits.INBOX_JOBS_COUNTED_MAX)
        return InboxMeasure(waiting, oldest_at)


async def promote_one(transaction: Transaction, named: tuple[str, str], policies: Policies, now: InstantMs) -> None:
    """Move a tenant's job on at once, if it is still in the inbox. It is to be ended: no room is needed for it."""
    tenant, job_id = named
    rows = await transaction.rows("take_from_inbox", job_id, tenant)
    if rows:
        await promote_rows(transaction, rows, policies, ANY_TERMS, now)


async def promote_rows(
    transaction: Transaction, rows: Sequence[Row], policies: Policies, terms: Terms, now: InstantMs
) -> None:
    """Accept what this transaction has just taken out of the inbox, as if it came over HTTP now."""
    # The oldest first: among jobs with one key it is to be the one that has it.
    new = sorted((row for row in rows if not row[-1]), key=lambda row: str(row[0]))
    if not new:
        return
    refused: list[Refusal] = [(_submission(row, terms), TenantRevoked()) for row in new if row[-2]]
    submissions = [_submission(row, terms) for row in new if not row[-2]]
    answers = await accept_limited(transaction, submissions, counts_inbox=False) if submissions else ()
    for submission, answer in zip(submissions, answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, Accepted):
            refused.append((submission, answer))
    await _refuse(transaction, refused, policies, now)
    transaction.fault_point("inbox-promoted")


async def _find_earlier(transaction: Transaction, submission: Submission) -> Earlier | None:
    """What the key of a submission stands for, as far as it is committed."""
    known = await find_earlier(transaction, [submission])
    if not known and submission.key is not None:
        named = (submission.job_id, submission.tenant, submission.operation, submission.key.key)
        known = await answer_known(transaction, [submission], await transaction.rows("find_keys_in_inbox", *named))
    return known.get(submission.job_id)


async def _refuse(transaction: Transaction, refused: Sequence[Refusal], policies: Policies, now: InstantMs) -> None:
    """End jobs that lost their key or met a limit: whoever was given their id sees why. They never had a place in the
    queue."""
    if not refused:
        return
    rows = [_refused_row(submission) for submission, _ in refused]
    await transaction.run("insert_refused", *columns(rows, _REFUSED_COLUMNS))
    jobs = [new_job(submission) for submission, _ in refused]
    await transaction.tell([(EventType.ACCEPTED, job) for job in jobs])
    endings = Endings(transaction)
    for job, (_, answer) in zip(jobs, refused, strict=True):
        place = Place(job.operation, job.tenant, job.priority, job.id)
        waited = Moving(job.available_at, 1, 0, 0, 0, is_alone=False, started_at=None, updated_at=job.updated_at)
        policy, error = policies.of(job.operation), _error(answer)
        ending = Ending(Status.FAILED, policy, waited.changed(now), error=error, is_dead_letter=True)
        endings.end_job(place, fixed_of(job), ending, now)
    await endings.write()


def _error(answer: Earlier | QueueFull | OverBudget | TenantRevoked) -> ErrorInfo:
    category, code = ErrorCategory.INVALID_INPUT, None
    match answer:
        case QueueFull(limit, queued):
            category, code = ErrorCategory.LIMIT_EXCEEDED, "too-many-queued"
            detail = f"When this work was to be queued, {queued} jobs were, and no more than {limit.value:g} may be."
        case OverBudget(charge):
            category, code = ErrorCategory.LIMIT_EXCEEDED, "budget-exceeded"
            cost, left = units_of(charge.units), units_of(answer.left)
            detail = f"When this work was to be queued, {left} {charge.kind} of its budget were left; it costs {cost}."
        case TenantRevoked():
            category, code, detail = ErrorCategory.TENANT_REVOKED, None, "The tenant was revoked before it was queued."
        case Replayed(job):
            code, detail = "idempotency-key-replayed", f"The same work was accepted under this key as {job.id}."
        case KeyConflict(job_id):
            code, detail = "idempotency-key-reused", f"The idempotency key was used for other work, which is {job_id}."
        case KeyOfExpiredJob(job_id):
            code, detail = "job-expired", f"The same work was accepted under this key as {job_id}, which has expired."
    return ErrorInfo(category, detail, code=code)


def _submission(row: Row, terms: Terms) -> Submission:
    (
        job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
        correlation_id, traceparent, payload, key, algorithm, fingerprint, key_expires_at, costs,
    ) = row[:_TAKEN_COLUMNS]  # fmt: skip
    return Submission(
        job_id=job_id,
        tenant=tenant,
        operation=operation,
        operation_version=operation_version,
        payload=payload,
        created_at=created_at,
        available_at=available_at,
        deadline_at=deadline_at,
        priority=priority,
        max_attempts=max_attempts,
        correlation_id=correlation_id,
        traceparent=traceparent,
        key=None if key is None else IdempotencyKey(key, algorithm, fingerprint, key_expires_at),
        limits=terms.queued(tenant, operation),
        charges=() if costs is None else terms.charges(tenant, operation, _COSTS.decode(costs), created_at),
    )


def _refused_row(submission: Submission) -> Row:
    return (
        submission.job_id,
        submission.tenant,
        submission.operation,
        submission.operation_version,
        submission.priority,
        submission.max_attempts,
        submission.created_at,
        submission.available_at,
        submission.deadline_at,
        submission.correlation_id,
        submission.traceparent,
        submission.payload,
    )
