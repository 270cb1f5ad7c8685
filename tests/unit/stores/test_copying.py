"""A store copied into another engine: everything that can be read, replayed, claimed or told is the same there."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
import pytest_asyncio
from full_store import Filled, fill, order_of_claims, picture
from msgspec import structs

from coatcheck.core.tenancy import Controls
from coatcheck.operating import Copied, Copy
from coatcheck.settings import Settings
from coatcheck.store.controls import AddTenant, Tenant
from coatcheck.store.dump import COLUMNS, Kind
from coatcheck.store.errors import StoreRefused
from coatcheck.store.records import Accepted, KeyConflict, KeyOfExpiredJob, Replayed
from coatcheck.stores.postgres import schema as postgres_schema
from coatcheck.stores.postgres.dump import PostgresDump
from coatcheck.stores.sqlite import schema as sqlite_schema
from coatcheck.stores.sqlite.dump import SqliteDump
from coatcheck.testing.conformance.world import (
    StoreFactory,
    World,
    let_leases_run_out,
)
from harness import postgres_work
from harness.postgres_factory import PostgresFactory
from harness.postgres_server import shared_server
from harness.sqlite_factory import SqliteFactory

WAYS = [("sqlite", "postgres"), ("postgres", "sqlite")]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is or will be."""

    url: str
    factory: StoreFactory

    async def world(self, before: World | None = None) -> World:
        """The store there, opened; at the time of the one before."""
        world = World(self.factory, events=True)
        if before is not None:
            world.clock = before.clock
        await world.reopen()
        return world


async def place(engine: str, folder: Path) -> Place:
    if engine == "sqlite":
        folder.mkdir()
        return Place(f"sqlite:///{folder}/jobs.db", SqliteFactory(folder / "jobs.db"))
    dsn = await shared_server().new_database()
    return Place(dsn, PostgresFactory(dsn=dsn))


@dataclass(frozen=True, slots=True)
class Way:
    """From a store with everything in it, which is closed, to a place with nothing."""

    source: Place
    target: Place
    world: World
    filled: Filled
    seen: Mapping[str, Any]


@pytest_asyncio.fixture(params=WAYS, ids=" to ".join)
async def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    source, target = [await place(engine, tmp_path / side) for engine, side in zip(request.param, "ab", strict=True)]
    world = await source.world()
    filled = await fill(world)
    seen = await picture(world, filled)
    await world.close()
    return Way(source, target, world, filled, seen)


async def copy(source: Place, target: Place, *, break_off_at: int | None = None) -> Copied:
    calls = 0

    def on_rows(kind: Kind, rows: int) -> None:
        nonlocal calls
        calls += 1
        if calls == break_off_at:
            raise KeyboardInterrupt

    copying = Copy(Settings(store=source.url), Settings(store=target.url), lambda counts: None, on_rows)
    return await copying.run()


async def refusal(source: Place, target: Place) -> str:
    with pytest.raises(StoreRefused) as caught:
        await copy(source, target)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


async def test_every_kind_of_row_is_copied_and_every_verb_for_reading_says_the_same(way: Way) -> None:
    copied = await copy(way.source, way.target)
    assert copied.app == "conformance"
    assert [kind for kind, contents in copied.contents.items() if contents.rows == 0] == []
    world = await way.target.world(way.world)
    assert await picture(world, way.filled) == way.seen
    assert await way.target.factory.count_rows() == {
        **dict.fromkeys(await way.target.factory.count_rows(), 0),
        **{kind.value: contents.rows for kind, contents in copied.contents.items()},
    }
    await world.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_store_can_be_copied_within_its_engine(engine: str, tmp_path: Path) -> None:
    source, target = await place(engine, tmp_path / "a"), await place(engine, tmp_path / "b")
    world = await source.world()
    filled = await fill(world)
    seen = await picture(world, filled)
    await world.close()
    await copy(source, target)
    world = await target.world(world)
    assert await picture(world, filled) == seen
    await world.close()


async def test_keys_are_remembered(way: Way) -> None:
    await copy(way.source, way.target)
    world = await way.target.world(way.world)
    done, erased = way.filled.repeats
    again = await world.store.accept_job(structs.replace(done, job_id=world.submission().job_id))
    assert again == Replayed(await world.find(done.job_id))
    assert done.key is not None
    other = structs.replace(done, key=structs.replace(done.key, fingerprint="0" * 64))
    assert await world.store.accept_job(other) == KeyConflict(done.job_id)
    assert await world.store.accept_job(erased) == KeyOfExpiredJob(erased.job_id)
    await world.close()


async def test_what_waits_starts_in_the_order_in_which_it_would_have_started(way: Way) -> None:
    await copy(way.source, way.target)
    old, new = await way.source.world(way.world), await way.target.world(way.world)
    now_us = way.world.clock.now_us()
    there = await order_of_claims(new)
    assert way.world.clock.now_us() > now_us
    here = await order_of_claims(old)
    assert there == here
    assert len(there) > 15
    await old.close()
    await new.close()


async def test_the_attempt_that_ran_keeps_its_lease_until_it_runs_out(way: Way) -> None:
    await copy(way.source, way.target)
    world = await way.target.world(way.world)
    effect = await world.store.find_effect(way.filled.running.lease, "mail")
    assert effect is None
    assert await let_leases_run_out(world) == 1
    job = await world.find(way.filled.running.job.id)
    assert (job.status.value, job.cancel_reason) == ("cancelled", "no longer needed")
    await world.close()


async def test_new_work_and_new_events_come_after_what_was_copied(way: Way) -> None:
    await copy(way.source, way.target)
    world = await way.target.world(way.world)
    before = await world.store.read_outbox(1_000)
    accepted = await world.store.accept_job(world.submission())
    assert isinstance(accepted, Accepted)
    *same, new = await world.store.read_outbox(1_000)
    assert same == before
    assert (new.job_id, new.seq > before[-1].seq) == (accepted.job.id, True)
    await world.close()


async def test_processes_read_the_controls_that_were_copied(way: Way) -> None:
    await copy(way.source, way.target)
    world = await way.target.world(way.world)
    assert await world.store.read_controls_version() > Controls().version
    before = await world.store.read_audit(100)
    entry = structs.replace(before[0].entry, action="another")
    assert await world.store.change_controls(AddTenant(Tenant("another", world.now)), entry)
    assert (await world.store.read_audit(1))[0].seq > before[0].seq
    await world.close()


async def test_a_copy_that_is_broken_off_leaves_nothing_and_can_be_run_again(way: Way) -> None:
    for at in (1, 6, 14, 20):
        with pytest.raises(KeyboardInterrupt):
            await copy(way.source, way.target, break_off_at=at)
        assert set((await way.target.factory.count_rows()).values()) == {0}
    await copy(way.source, way.target)


async def test_rows_that_come_back_otherwise_undo_the_copy(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (SqliteDump, PostgresDump):
        write = kind.write

        async def forget_one(self: Any, what: Kind, records: Any, write: Any = write) -> None:
            await write(self, what, records[1:] if what is Kind.PAYLOAD else records)

        monkeypatch.setattr(kind, "write", forget_one)
    assert "gave back other rows of payload" in await refusal(way.source, way.target)
    assert set((await way.target.factory.count_rows()).values()) == {0}


async def test_the_source_stays_as_it_was(way: Way, tmp_path: Path) -> None:
    file = tmp_path / "a" / "jobs.db"
    before = file.read_bytes() if file.exists() else b""
    await copy(way.source, way.target)
    assert (file.read_bytes() if file.exists() else b"") == before
    world = await way.source.world(way.world)
    assert await picture(world, way.filled) == way.seen
    await world.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_stores_in_use_are_refused(engine: str, tmp_path: Path) -> None:
    used, other = await place(engine, tmp_path / "a"), await place("sqlite", tmp_path / "b")
    world = await used.world()
    assert "in use" in await refusal(used, other)
    away = await other.world()
    await away.close()
    assert "in use" in await refusal(other, used)
    await world.close()
    await copy(used, Place(f"sqlite:///{tmp_path}/c.db", other.factory))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_what_cannot_be_copied_is_refused(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, full, other = [await place(engine, tmp_path / name) for name in "abc"]
    assert "no store at" in await refusal(source, other)
    for one in (source, full):
        world = await one.world()
        await world.accept()
        await world.close()
    assert "not empty" in await refusal(source, full)
    assert "copied into itself" in await refusal(source, source)
    for code in (sqlite_schema, postgres_schema):
        known = code.migrations()
        monkeypatch.setattr(code, "migrations", lambda known=known: [*known, (known[-1][0] + 1, [])])
    assert "run `coatcheck db upgrade` on it first" in await refusal(source, other)


async def test_work_that_is_still_in_the_inbox_is_refused(tmp_path: Path) -> None:
    source, target = await place("postgres", tmp_path / "a"), await place("sqlite", tmp_path / "b")
    assert isinstance(source.factory, PostgresFactory)
    world = await source.world()
    async with source.factory.transaction() as connection:
        await world.store.hand_in(connection, world.submission())  # type: ignore[attr-defined] # the engine has an inbox
        await world.close()
        assert "somebody writes to the database" in await refusal(source, target)
    assert "not in the queue yet (1)" in await refusal(source, target)


async def test_running_work_shows_where_no_session_does(tmp_path: Path) -> None:
    source, target = await place("postgres", tmp_path / "a"), await place("sqlite", tmp_path / "b")
    async with postgres_work.opened(source.url, app_name="conformance") as store:
        await postgres_work.accept(store)
        await postgres_work.claim(store)
    assert "jobs in the database were running a moment ago (1)" in await refusal(source, target)
    await shared_server().execute("UPDATE coatcheck.lease SET ends_at = 0", source.url)
    await copy(source, target)


async def test_a_copy_between_engines_that_never_wait_can_be_cancelled(tmp_path: Path) -> None:
    source, target = await place("sqlite", tmp_path / "a"), await place("sqlite", tmp_path / "b")
    world = await source.world()
    await world.accept()
    await world.close()
    task = asyncio.current_task()
    assert task is not None

    def cancel(kind: Kind, rows: int) -> None:
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await Copy(Settings(store=source.url), Settings(store=target.url), lambda counts: None, cancel).run()
    task.uncancel()
    assert set((await target.factory.count_rows()).values()) == {0}


KILLED_COPY = """
import asyncio, os, signal, sys
from coatcheck.operating import Copy
from coatcheck.settings import Settings
left = int(sys.argv[3])
def count(kind, rows):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(Copy(Settings(store=sys.argv[1]), Settings(store=sys.argv[2]), lambda counts: None, count).run())
"""


async def test_a_killed_copy_leaves_two_sound_files(tmp_path: Path) -> None:
    source, target = await place("sqlite", tmp_path / "a"), await place("sqlite", tmp_path / "b")
    world = await source.world()
    filled = await fill(world)
    seen = await picture(world, filled)
    await world.close()
    for nth in (2, 13, 25):
        command = [sys.executable, "-c", KILLED_COPY, source.url, target.url, str(nth)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert set((await target.factory.count_rows()).values()) == {0}
    await copy(source, target)
    world = await target.world(world)
    assert await picture(world, filled) == seen
    await world.close()


async def test_a_dump_leaves_no_column_out(tmp_path: Path) -> None:
    """What only one engine has is named here; everything else must be a column of the dump."""
    sqlite, postgres = await place("sqlite", tmp_path / "a"), await place("postgres", tmp_path / "b")
    for one in (sqlite, postgres):
        await (await one.world()).close()
    dumped = {f"{kind}.{column}" for kind, columns in COLUMNS.items() for column in columns}
    connection = apsw.Connection(sqlite.url.removeprefix("sqlite:///"))
    there = connection.execute(
        "SELECT s.name || '.' || c.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c"
        " WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' AND s.name <> 'meta'"
    ).fetchall()
    assert {name for (name,) in there} - dumped == {"lease.beat", "turn.is_held", "turn.is_waiting", "turn.waiting"}
    there = await shared_server().execute(
        "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'coatcheck'"
        " AND table_name NOT IN ('meta', 'inbox', 'relay_turn', 'job_now')",
        postgres.url,
    )
    assert {name for (name,) in there} - dumped == {"lease.ends_at", "turn.is_held", "turn.is_waiting"}
