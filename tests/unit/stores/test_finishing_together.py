"""Attempts that end in one commit: each is settled under its own lease, in statements that all of them share."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import apsw
import pytest
import pytest_asyncio
from msgspec import structs

from coatcheck.core.events import EventType
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import Outcome, Released
from coatcheck.core.states import Status
from coatcheck.store.records import Claim, Finishing, Lease
from coatcheck.stores.sqlite import store as store_module
from coatcheck.stores.sqlite.claims import finish
from coatcheck.stores.sqlite.connection import open_writer
from coatcheck.stores.sqlite.statements import sql
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.conformance.world import BROKEN, DONE, FLAKY, POLICY, World, cancel, stale
from harness.sqlite_factory import SqliteFactory

MANY = 300
"""More than one statement takes."""


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(SqliteFactory(tmp_path / "jobs.db"), events=True)
    await world.reopen()
    yield world
    await world.close()


async def _start(world: World, count: int) -> list[Claim]:
    for _ in range(count):
        await world.accept(max_attempts=2)
    claims: list[Claim] = []
    while len(claims) < count:
        claims += await world.claim(slots=count - len(claims))
    return claims


async def _finish(world: World, endings: Sequence[tuple[Lease, Outcome]]) -> Sequence[JobRecord | None]:
    """End attempts in one call of the bulk verb."""
    items = [(Finishing(lease, outcome, POLICY, 0.5), world.now) for lease, outcome in endings]
    assert isinstance(world.store, SqliteStore)
    return await world.store._writer.run(lambda transaction: finish(transaction, items))


async def test_each_outcome_is_settled_by_itself(world: World) -> None:
    done, broken, flaky, released = await _start(world, 4)
    outcomes: list[Outcome] = [DONE, BROKEN, FLAKY, Released()]
    claims = (done, broken, flaky, released)
    told = await _finish(world, [(claim.lease, outcome) for claim, outcome in zip(claims, outcomes, strict=True)])
    assert [job and job.status for job in told] == [Status.SUCCEEDED, Status.FAILED, Status.QUEUED, Status.QUEUED]
    assert list(told) == [await world.find(claim.job.id) for claim in claims]
    entries = await world.store.read_outbox(100)
    ends = {entry.job_id: entry.type for entry in entries if entry.type not in (EventType.ACCEPTED, EventType.STARTED)}
    assert [ends[claim.job.id] for claim in claims] == [
        EventType.SUCCEEDED,
        EventType.FAILED,
        EventType.REQUEUED,
        EventType.REQUEUED,
    ]


async def test_a_lost_lease_among_others_changes_nothing(world: World) -> None:
    first, second, third = await _start(world, 3)
    other_attempt = structs.replace(third.lease, attempt=2)
    told = await _finish(
        world, [(stale(first.lease), BROKEN), (second.lease, DONE), (other_attempt, BROKEN), (first.lease, DONE)]
    )
    assert [job and job.id for job in told] == [None, second.job.id, None, first.job.id]
    assert (await world.find(first.job.id)).status is Status.SUCCEEDED
    assert (await world.find(third.job.id)).status is Status.RUNNING
    assert (await world.finish(third, DONE)).status is Status.SUCCEEDED


async def test_one_lease_ends_once_however_often_it_is_named(world: World) -> None:
    (claim,) = await _start(world, 1)
    told = await _finish(world, [(claim.lease, DONE), (claim.lease, BROKEN)])
    assert [job and job.status for job in told] == [Status.SUCCEEDED, None]
    assert (await world.find(claim.job.id)).status is Status.SUCCEEDED
    assert len(await world.store.list_attempts(claim.job.tenant, claim.job.id)) == 1


async def test_words_come_through_as_they_were_said(world: World) -> None:
    reason = 'She said "no"\\\x00\x1f\u2028 ünfein 🧥'
    (claim,) = await _start(world, 1)
    await cancel(world, claim.job, reason)
    await _finish(world, [(claim.lease, FLAKY)])
    assert (await world.find(claim.job.id)).cancel_reason == reason


async def test_many_end_in_few_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def note(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        statements.append(statement)
        return True

    def open_noted(path: Path) -> apsw.Connection:
        connection = open_writer(path)
        connection.exec_trace = note
        return connection

    monkeypatch.setattr(store_module, "open_writer", open_noted)
    world = World(SqliteFactory(tmp_path / "jobs.db"), events=False)
    await world.reopen()
    claims = await _start(world, MANY)
    statements.clear()
    told = await _finish(world, [(claim.lease, DONE) for claim in claims])
    assert [job and job.id for job in told] == [claim.job.id for claim in claims]
    # Leases read and deleted, attempts, jobs and results written, each in two statements; and the commit's own three.
    assert len(statements) == 5 * 2 + 3
    assert sql("count_commit") in statements
    assert (await world.factory.count_rows())["result"] == MANY
    await world.close()
