"""Accepting jobs: the keys are reserved and everything is written by one statement, all jobs of a batch together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from coatcheck.core import events, limits
from coatcheck.core.costs import OverBudget, Purses
from coatcheck.core.events import EventType
from coatcheck.core.job import JobRecord
from coatcheck.core.quotas import Places
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import (
    Accepted,
    Disposition,
    KeyConflict,
    KeyOfExpiredJob,
    QueueFull,
    Replayed,
    Submission,
    WakeUpKind,
)
from coatcheck.stores.postgres.connection import is_conflict, is_unavailable, unavailable
from coatcheck.stores.postgres.costs import charge, read_purses
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.reading import job_or_tombstone
from coatcheck.stores.postgres.rows import Row, columns, new_job, submission_values
from coatcheck.stores.postgres.transaction import Transaction

_COLUMNS = 17
_ROUNDS_MAX = 5
_QUEUE_LOCK = 0x717565

Earlier: TypeAlias = Replayed | KeyConflict | KeyOfExpiredJob
"""What a key that is known stands for."""


class _Room(NamedTuple):
    """What is taken of what is limited: places in queues, and budgets."""

    places: Places
    purses: Purses


class Acceptances(Facet):
    """The engine's AcceptanceStore."""

    async def accept_job(self, submission: Submission) -> Disposition:
        if submission.limits or submission.charges:
            return await self._limited_intake.run(accept_counted, submission)
        return await self._intake.run(accept, submission)

    async def find_earlier(self, submission: Submission) -> Disposition | None:
        if submission.key is None:
            return None
        found = await self._transactions.run(lambda transaction: find_earlier(transaction, [submission]))
        return found.get(submission.job_id)


async def accept(transaction: Transaction, submissions: Sequence[Submission]) -> Sequence[Disposition | Exception]:
    """Write the new jobs; for those whose key is known, find the jobs the keys stand for.

    The jobs are written by one statement, so that a batch needs one round trip. What comes after only reads: should
    it fail, the new jobs are accepted all the same.
    """
    answers: dict[str, Disposition | Exception] = {}
    left = list(submissions)
    for _ in range(_ROUNDS_MAX):
        try:
            await _accept_round(transaction, left, answers)
        except Exception as error:
            if not answers or not transaction.commits_each:
                raise
            reason = unavailable(error) if is_unavailable(error) or is_conflict(error) else error
            answers.update((submission.job_id, reason) for submission in left if submission.job_id not in answers)
        # A key that was pruned in between, or whose window ended with a neighbour's job, is free now.
        left = [submission for submission in left if submission.job_id not in answers]
        if not left:
            break
    refusal = StoreUnavailable("The idempotency key changes too fast.")
    return [answers.get(submission.job_id, refusal) for submission in submissions]


async def accept_counted(
    transaction: Transaction, submissions: Sequence[Submission]
) -> Sequence[Disposition | Exception]:
    """As accept, in their order as far as there is room: what is queued is counted under a lock of each tenant."""
    return await accept_limited(transaction, submissions, counts_inbox=True)


async def accept_limited(
    transaction: Transaction, submissions: Sequence[Submission], counts_inbox: bool
) -> Sequence[Disposition | Exception]:
    """The same, for a caller that may have taken from the inbox what it hands in: what is left there came later."""
    scopes = {limit.scope_of(submission.tenant) for submission in submissions for limit in submission.limits}
    charged = {submission.tenant for submission in submissions if submission.charges}
    if not scopes and not charged:
        return await accept(transaction, submissions)
    await transaction.rows("hold_tenants", _QUEUE_LOCK, sorted({*charged, *(tenant for tenant, _ in scopes)}))
    counts = await transaction.rows("count_queued", *columns(sorted(scopes), 2), counts_inbox) if scopes else ()
    places = Places({(tenant, operation): count for tenant, operation, count in counts})
    room = _Room(places, await read_purses(transaction, submissions))
    answers: dict[str, Disposition | Exception] = {}
    # A key that comes twice is known the second time.
    for part in _first_of_each_key(submissions):
        answers |= await _accept_within(transaction, part, room)
    return [answers[submission.job_id] for submission in submissions]


async def _accept_within(
    transaction: Transaction, submissions: Sequence[Submission], room: _Room
) -> dict[str, Disposition | Exception]:
    """What is known needs no place and is not charged; of the rest, what finds one and can be paid is accepted."""
    answers: dict[str, Disposition | Exception] = dict(await find_earlier(transaction, submissions))
    entering = []
    for submission in [submission for submission in submissions if submission.job_id not in answers]:
        refusal = _enter(room, submission)
        if refusal is None:
            entering.append(submission)
        else:
            answers[submission.job_id] = refusal
    if entering:
        accepted = await accept(transaction, entering)
        answers |= {submission.job_id: answer for submission, answer in zip(entering, accepted, strict=True)}
        await charge(transaction, [one for one in entering if isinstance(answers[one.job_id], Accepted)])
    return answers


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


async def _accept_round(
    transaction: Transaction, submissions: Sequence[Submission], answers: dict[str, Disposition | Exception]
) -> None:
    first, others = _first_of_each_key(submissions)
    jobs = {submission.job_id: new_job(submission) for submission in first}
    accepted = await _insert(transaction, first, jobs)
    answers.update((job_id, Accepted(jobs[job_id])) for job_id in accepted)
    known = [submission for submission in first if submission.job_id not in accepted] + others
    if known:
        answers.update(await find_earlier(transaction, known))


def _first_of_each_key(submissions: Sequence[Submission]) -> tuple[list[Submission], list[Submission]]:
    """Those that may go into one statement, which can touch a key only once, and the others."""
    seen: set[tuple[str, str, str]] = set()
    first: list[Submission] = []
    others: list[Submission] = []
    for submission in submissions:
        key = None if submission.key is None else (submission.tenant, submission.operation, submission.key.key)
        (others if key in seen else first).append(submission)
        if key is not None:
            seen.add(key)
    return first, others


async def _insert(
    transaction: Transaction, submissions: Sequence[Submission], jobs: Mapping[str, JobRecord]
) -> set[str]:
    """Write what is new; returns the ids of the jobs accepted."""
    has_events = transaction.has_events
    rows = [_row(submission, jobs[submission.job_id] if has_events else None) for submission in submissions]
    # One statement is one moment: everything a fault could come between lies before it.
    if any(submission.key is not None for submission in submissions):
        transaction.fault_point("key-reserved")
    if has_events:
        transaction.fault_point("outbox-written")
    accepted = {row[0] for row in await transaction.rows("accept", *columns(rows, _COLUMNS), EventType.ACCEPTED.value)}
    new = [submission for submission in submissions if submission.job_id in accepted]
    if new and has_events:
        transaction.hint(WakeUpKind.OUTBOX)
    for is_delayed in {submission.is_delayed for submission in new}:
        transaction.hint(WakeUpKind.SCHEDULED if is_delayed else WakeUpKind.READY)
    return accepted


async def find_earlier(transaction: Transaction, submissions: Sequence[Submission]) -> dict[str, Earlier]:
    """By job id of the submissions, what their keys stand for; left out where that window is over."""
    wanted = [(s.job_id, s.tenant, s.operation, s.key.key) for s in submissions if s.key is not None]
    if not wanted:
        return {}
    return await answer_known(transaction, submissions, await transaction.rows("find_keys", *columns(wanted, 4)))


async def answer_known(
    transaction: Transaction, submissions: Sequence[Submission], known: Sequence[Row]
) -> dict[str, Earlier]:
    """The same, of keys that were found: rows of find_keys."""
    if not known:
        return {}
    keys = {row[0]: row[1:] for row in known}
    by_id = {submission.job_id: submission for submission in submissions}
    wishes = [(row[2], by_id[new_id].tenant, by_id[new_id].created_at) for new_id, row in keys.items()]
    rows = await transaction.rows("find_jobs", *columns(wishes, 3), limits.INLINE_RESULT_BYTES_MAX)
    jobs = {wishes[row[0] - 1][0]: job_or_tombstone(row, wishes[row[0] - 1][2]) for row in rows}
    answers: dict[str, Earlier] = {}
    for new_id, (algorithm, fingerprint, job_id, expires_at) in keys.items():
        submission = by_id[new_id]
        key = submission.key
        assert key is not None, "only a key can be known"
        if expires_at <= submission.created_at:
            continue
        job = jobs.get(job_id)
        if (algorithm, fingerprint) != (key.algorithm, key.fingerprint):
            answers[new_id] = KeyConflict(job_id)
        else:
            answers[new_id] = Replayed(job) if isinstance(job, JobRecord) else KeyOfExpiredJob(job_id)
    return answers


def _row(submission: Submission, told: JobRecord | None) -> Row:
    return *submission_values(submission), None if told is None else events.event_data(told)
