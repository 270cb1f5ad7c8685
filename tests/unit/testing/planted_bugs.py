"""Bugs to plant in the product, each by replacing one function, with the invariant that must notice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NoReturn

import pytest
from msgspec import structs

from coatcheck.core.events import EventType
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import settle
from coatcheck.core.problems import Refused
from coatcheck.core.states import Status
from coatcheck.http.lists import ListAttempts
from coatcheck.http.submit import Submit
from coatcheck.store.records import Accepted, Finishing, JobPage, Lease, Submission
from coatcheck.stores.sqlite import acceptance, claiming, claims, settling
from coatcheck.stores.sqlite.acceptance import Acceptances
from coatcheck.stores.sqlite.commands import Commands
from coatcheck.stores.sqlite.reading import Reading
from coatcheck.stores.sqlite.transaction import Transaction
from coatcheck.stores.sqlite.upkeep import Sweeping

DAY_MS = 86_400_000
SPARE = "spare"
"""The operation of the story that nothing else depends on."""

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Bug:
    """What is replaced, and which invariant is broken by it."""

    breaks: str
    plant: Callable[[Patch], None]


class Undone(Exception):
    """Rolls a transaction back with its result."""


def acknowledge_before_commit(patch: Patch) -> None:
    """One submission is answered, and its commit never comes."""
    accept_job = Acceptances.accept_job

    def accept_and_undo(transaction: Transaction, submission: Submission) -> NoReturn:
        raise Undone(acceptance.accept(transaction, [submission])[0])

    async def accept(self: Acceptances, submission: Submission) -> Any:
        if submission.operation != SPARE:
            return await accept_job(self, submission)
        try:
            return await self._writer.run(lambda transaction: accept_and_undo(transaction, submission))
        except Undone as undone:
            return undone.args[0]

    patch.setattr(Acceptances, "accept_job", accept)


def accept_twice(patch: Patch) -> None:
    """One submission makes two jobs."""
    accept_job = Acceptances.accept_job

    async def accept(self: Acceptances, submission: Submission) -> Any:
        if submission.operation == SPARE:
            twin_id = submission.job_id[:-1] + ("0" if submission.job_id[-1] != "0" else "1")
            await accept_job(self, structs.replace(submission, job_id=twin_id))
        return await accept_job(self, submission)

    patch.setattr(Acceptances, "accept_job", accept)


def look_at_no_key(patch: Patch) -> None:
    """A key that was used before is not found."""

    def reserve_all(transaction: Transaction, submissions: Sequence[Submission]) -> set[str]:
        return {submission.job_id for submission in submissions}

    patch.setattr(acceptance, "_reserve_keys", reserve_all)


def compare_no_body(patch: Patch) -> None:
    """A key stands for its job whatever body comes with it."""
    find_earlier = acceptance._find_earlier

    def find(transaction: Transaction, submission: Submission) -> Any:
        key = submission.key
        assert key is not None
        row = transaction.row("find_key", tenant=submission.tenant, operation=submission.operation, key=key.key)
        found = key if row is None else structs.replace(key, algorithm=row[0], fingerprint=row[1])
        return find_earlier(transaction, structs.replace(submission, key=found))

    patch.setattr(acceptance, "_find_earlier", find)


def refuse_what_is_stored(patch: Patch) -> None:
    """A submission is refused after its commit."""
    job_of = Submit._job_of

    def refuse(self: Submit, disposition: Any, exchange: Any, operation: Any) -> Any:
        if isinstance(disposition, Accepted) and operation.name == SPARE:
            raise Refused("payload-too-large", "It is too large after all.")
        return job_of(self, disposition, exchange, operation)

    patch.setattr(Submit, "_job_of", refuse)


def finish_with_any_token(patch: Patch) -> None:
    """Whoever says that a job is finished is believed."""
    finish = claims.finish

    def finish_any(transaction: Transaction, finishings: Sequence[tuple[Finishing, int]]) -> Any:
        believed = [
            (structs.replace(finishing, lease=_lease_now(transaction, finishing.lease)), now)
            for finishing, now in finishings
        ]
        return finish(transaction, believed)

    patch.setattr(claims, "finish", finish_any)


def record_with_any_token(patch: Patch) -> None:
    """An effect is recorded whoever asks."""
    record = claims._record_effect

    def record_any(transaction: Transaction, lease: Lease, name: str, value: bytes, now: int) -> Any:
        return record(transaction, _lease_now(transaction, lease), name, value, now)

    patch.setattr(claims, "_record_effect", record_any)


def lose_an_event(patch: Patch) -> None:
    """An event that should be in the commit is told after it, and the process dies in between."""
    tell, numbers = Transaction.tell, count(1)

    def forget(self: Transaction, event: EventType, jobs: Sequence[JobRecord]) -> None:
        if event is not EventType.SUCCEEDED or next(numbers) != 1:
            tell(self, event, jobs)

    patch.setattr(Transaction, "tell", forget)


def tell_an_end_twice(patch: Patch) -> None:
    """An end is told as two events."""
    tell = Transaction.tell

    def tell_twice(self: Transaction, event: EventType, jobs: Sequence[JobRecord]) -> None:
        tell(self, event, jobs)
        if event is EventType.FAILED:
            tell(self, event, [structs.replace(job, version=job.version + 1) for job in jobs])

    patch.setattr(Transaction, "tell", tell_twice)


def change_a_final_job(patch: Patch) -> None:
    """A job that succeeded can still be cancelled."""
    cancel_job = Commands.cancel_job

    async def cancel(self: Commands, tenant: str, job_id: str, *rest: Any) -> Any:
        def change(transaction: Transaction) -> None:
            transaction._connection.execute(
                "UPDATE job SET status = 'cancelled', result_type = NULL, version = version + 1"
                " WHERE id = ? AND status = 'succeeded'",
                (job_id,),
            )

        await self._writer.run(change)
        return await cancel_job(self, tenant, job_id, *rest)

    patch.setattr(Commands, "cancel_job", cancel)


def count_no_attempt(patch: Patch) -> None:
    """Failed attempts are not counted."""

    def settle_first(outcome: Any, tally: Any, *rest: Any) -> Any:
        return settle(outcome, replace(tally, counted_attempts=1), *rest)

    patch.setattr(settling, "settle", settle_first)


def hide_a_job_from_lists(patch: Patch) -> None:
    """The newest job is missing from every list."""
    list_jobs = Reading.list_jobs

    async def hide(self: Reading, *args: Any) -> JobPage:
        page = await list_jobs(self, *args)
        return replace(page, jobs=page.jobs[1:])

    patch.setattr(Reading, "list_jobs", hide)


def list_an_old_state(patch: Patch) -> None:
    """Lists lag behind."""
    list_jobs = Reading.list_jobs

    async def lag(self: Reading, *args: Any) -> JobPage:
        page = await list_jobs(self, *args)
        return replace(page, jobs=[structs.replace(job, attempt=0) for job in page.jobs])

    patch.setattr(Reading, "list_jobs", lag)


def leave_a_lease(patch: Patch) -> None:
    """A lease outlives its attempt."""
    finish = claims.finish

    def finish_and_keep(transaction: Transaction, finishings: Sequence[tuple[Finishing, int]]) -> Any:
        connection = transaction._connection
        rows = [
            connection.execute("SELECT * FROM lease WHERE job_id = ?", (finishing.lease.job_id,)).fetchone()
            for finishing, _ in finishings
        ]
        jobs = finish(transaction, finishings)
        for row, job in zip(rows, jobs, strict=True):
            if row is not None and job is not None and job.status is Status.SUCCEEDED:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO lease VALUES ({marks})", row)  # noqa: S608 - question marks only
        return jobs

    patch.setattr(claims, "finish", finish_and_keep)


def forget_a_job_early(patch: Patch) -> None:
    """Jobs expire a week before their time."""
    find_job = Reading.find_job

    async def find(self: Reading, tenant: str, job_id: str, now: int) -> Any:
        return await find_job(self, tenant, job_id, now + 8 * DAY_MS)

    patch.setattr(Reading, "find_job", find)


def keep_jobs_for_a_minute(patch: Patch) -> None:
    """The operation's retention is not heeded."""
    end_jobs = settling.end_jobs

    def end_soon(transaction: Transaction, jobs_ended: Sequence[Any]) -> Any:
        return end_jobs(transaction, [ended._replace(ending=soon(ended.ending)) for ended in jobs_ended])

    def soon(ending: Any) -> Any:
        retention = replace(ending.policy.retention, succeeded_s=60.0, result_s=60.0)
        return ending._replace(policy=replace(ending.policy, retention=retention))

    patch.setattr(settling, "end_jobs", end_soon)


def fail_with_500(patch: Patch) -> None:
    """An exception nobody expected reaches a client as 500."""

    async def fail(self: ListAttempts, *_: Any) -> NoReturn:
        raise RuntimeError

    patch.setattr(ListAttempts, "__call__", fail)


def read_an_old_version(patch: Patch) -> None:
    """Reads come from a cache that nobody clears."""
    find_job, cache = Reading.find_job, dict[str, Any]()

    async def find(self: Reading, tenant: str, job_id: str, now: int) -> Any:
        found = await find_job(self, tenant, job_id, now)
        return cache.setdefault(job_id, found) if isinstance(found, JobRecord) else found

    patch.setattr(Reading, "find_job", find)


def rescue_nobody(patch: Patch) -> None:
    """Leases that ran out are not looked at."""

    async def rescue(self: Sweeping, *_: Any) -> int:
        return 0

    patch.setattr(Sweeping, "rescue_leases", rescue)


def lose_a_retry(patch: Patch) -> None:
    """A job that is to wait for its next attempt is put nowhere."""
    patch.setattr(settling, "put_waiting", lambda *_: None)


def heed_no_limit(patch: Patch) -> None:
    """An operation's concurrency is not heeded."""
    patch.setattr(claiming, "_slots", lambda transaction, request, operation: request.slots_by_operation[operation])


def _lease_now(transaction: Transaction, lease: Lease) -> Lease:
    """The lease that its job has now, whoever holds it."""
    rows = transaction._connection.execute("SELECT attempt, token FROM lease WHERE job_id = ?", (lease.job_id,))
    row = rows.fetchone()
    return lease if row is None else Lease(lease.job_id, *row)


BUGS: Mapping[str, Bug] = {
    bug.plant.__name__: bug
    for bug in (
        Bug("I1", acknowledge_before_commit),
        Bug("I2", accept_twice),
        Bug("I6", look_at_no_key),
        Bug("I6", compare_no_body),
        Bug("I7", refuse_what_is_stored),
        Bug("I5", finish_with_any_token),
        Bug("I5", record_with_any_token),
        Bug("I9", lose_an_event),
        Bug("I9", tell_an_end_twice),
        Bug("I3", change_a_final_job),
        Bug("I4", count_no_attempt),
        Bug("I10", hide_a_job_from_lists),
        Bug("I10", list_an_old_state),
        Bug("I14", leave_a_lease),
        Bug("I8", forget_a_job_early),
        Bug("I8", keep_jobs_for_a_minute),
        Bug("I15", fail_with_500),
        Bug("I3", read_an_old_version),
        Bug("I14", rescue_nobody),
        Bug("I14", lose_a_retry),
        Bug("I12", heed_no_limit),
    )
}
