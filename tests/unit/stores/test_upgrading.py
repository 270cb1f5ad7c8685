"""A schema of a later build: looked at, upgraded by hand or at a start, and lived with by processes of this build."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.states import Status
from coatcheck.store.contract import Store
from coatcheck.store.database import SchemaState, StoreDatabase
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.postgres import schema as postgres_schema
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.database import PostgresDatabase
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.stores.sqlite import schema as sqlite_schema
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.database import SqliteDatabase
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.conformance.world import BROKEN, DONE, StoreFactory, World, job_in
from coatcheck.testing.faults import FaultPoints
from harness.postgres_factory import PostgresFactory
from harness.postgres_server import shared_server
from harness.sqlite_factory import SqliteFactory

APP = "conformance"


@dataclass(frozen=True, slots=True)
class Engine:
    """An empty database of one engine, how its operator and a careful process open it, and its code for the schema."""

    factory: StoreFactory
    database: Callable[[FaultPoint], StoreDatabase]
    careful: Callable[[], Store]
    code: ModuleType

    async def state(self) -> SchemaState:
        return await self.database(no_fault).read_schema()

    async def upgrade(self, fault_point: FaultPoint = no_fault) -> list[int]:
        return list(await self.database(fault_point).upgrade(APP))


def sqlite(path: Path) -> Engine:
    return Engine(
        SqliteFactory(path),
        lambda fault_point: SqliteDatabase(path, fault_point),
        lambda: SqliteStore(SqliteConfig(path, APP, may_migrate=False)),
        sqlite_schema,
    )


async def postgres() -> Engine:
    dsn = await shared_server().new_database()
    return Engine(
        PostgresFactory(dsn=dsn),
        lambda fault_point: PostgresDatabase(dsn, fault_point=fault_point),
        lambda: PostgresStore(PostgresConfig(dsn, APP, may_migrate=False)),
        postgres_schema,
    )


@pytest_asyncio.fixture(params=["sqlite", "postgres"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return sqlite(tmp_path / "jobs.db") if request.param == "sqlite" else await postgres()


@pytest_asyncio.fixture
async def world(engine: Engine) -> AsyncIterator[World]:
    """A store of this build, open."""
    world = World(engine.factory, events=True)
    await world.reopen()
    yield world
    await world.close()


@pytest.fixture
def later_build(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Call it, and whatever is opened from then on is opened by the next build; returns its migrations' numbers."""

    def learn() -> list[int]:
        known = engine.code.migrations()
        first = known[-1][0] + 1
        later = [
            (first, ["ALTER TABLE job ADD COLUMN weight integer", "CREATE INDEX job_by_weight ON job (weight)"]),
            (first + 1, ["CREATE TABLE later (name text PRIMARY KEY)", "ALTER TABLE ready ADD COLUMN weight integer"]),
        ]
        monkeypatch.setattr(engine.code, "migrations", lambda: [*known, *later])
        return [number for number, _ in later]

    return learn


async def test_looking_makes_nothing(engine: Engine) -> None:
    for _ in range(2):
        state = await engine.state()
        assert (state.app, state.number, state.is_pending) == (None, 0, True)
    assert (await engine.database(no_fault).examine(APP)).app is None
    assert (await engine.state()).app is None


async def test_upgrade_makes_a_store_and_then_has_nothing_to_do(engine: Engine) -> None:
    newest = engine.code.migrations()[-1][0]
    assert await engine.upgrade() == list(range(1, newest + 1))
    assert await engine.state() == SchemaState(APP, newest, newest)
    assert await engine.upgrade() == []


async def test_pending_migrations_are_seen_run_and_told(
    engine: Engine, world: World, later_build: Callable[[], list[int]]
) -> None:
    await world.close()
    before = await engine.state()
    later = later_build()
    state = await engine.state()
    assert (state.is_pending, state.number, state.newest) == (True, before.number, later[-1])
    assert await engine.database(no_fault).examine(APP) == state
    assert (await engine.state()).number == before.number, "examining it upgrades nothing"
    assert await engine.upgrade() == later
    assert await engine.state() == SchemaState(APP, later[-1], later[-1])


async def test_an_upgrade_that_is_cut_off_goes_on_with_the_next_migration(
    engine: Engine, world: World, later_build: Callable[[], list[int]]
) -> None:
    job = await world.accept()
    await world.close()
    first, second = later_build()
    for step, done in ((1, first - 1), (3, first), (2, first)):
        faults = FaultPoints()
        faults.raise_at("migration-step", KeyboardInterrupt(), step)  # type: ignore[arg-type] # as a kill would
        with pytest.raises(KeyboardInterrupt):
            await engine.upgrade(faults)
        assert (await engine.state()).number == done
    assert await engine.upgrade() == [second]
    await world.reopen()
    assert (await world.find(job.id)).status is Status.QUEUED


async def test_upgrades_at_once_run_each_migration_once(
    engine: Engine, world: World, later_build: Callable[[], list[int]]
) -> None:
    later = later_build()
    runs = [asyncio.to_thread(asyncio.run, engine.upgrade()) for _ in range(3)]
    done = [number for numbers in await asyncio.gather(*runs) for number in numbers]
    assert sorted(done) == later


async def test_a_process_of_this_build_goes_on_after_another_upgraded(
    engine: Engine, world: World, later_build: Callable[[], list[int]]
) -> None:
    started = await world.start()
    waiting = await world.accept(delay_s=5)
    later_build()
    await engine.upgrade()
    assert (await world.finish(started, DONE)).status is Status.SUCCEEDED
    world.clock.advance(5)
    assert (await world.finish(await world.restart(waiting.id), BROKEN)).status is Status.FAILED
    for status in sorted(Status, key=Status.QUEUED.__eq__):
        job = await job_in(world, status)
        assert await world.find(job.id) == job
    assert len(await world.store.read_outbox(100)) > 8


async def test_a_start_on_a_newer_schema_is_refused_in_one_sentence(
    engine: Engine, world: World, later_build: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = engine.code.migrations()
    newest = later_build()[-1]
    await engine.upgrade()
    monkeypatch.setattr(engine.code, "migrations", lambda: known)
    state = await engine.state()
    assert (state.is_newer, state.is_pending) == (True, False)
    for refused in (world.another_store(), engine.upgrade(), engine.database(no_fault).examine(APP)):
        with pytest.raises(StoreRefused) as caught:
            await refused
        assert f"has schema {newest}, this build knows {known[-1][0]}" in str(caught.value)
        assert str(caught.value).endswith("use a newer coatcheck.")


async def test_where_an_operator_migrates_a_start_only_refuses(
    engine: Engine, world: World, later_build: Callable[[], list[int]]
) -> None:
    store = engine.careful()
    await store.open()
    await store.close()
    before = await engine.state()
    later = later_build()
    with pytest.raises(StoreRefused) as caught:
        await engine.careful().open()
    assert f"has schema {before.number}, this build needs {later[-1]}" in str(caught.value)
    assert "coatcheck db upgrade" in str(caught.value)
    assert (await engine.state()).number == before.number
    await engine.upgrade()
    store = engine.careful()
    await store.open()
    await store.close()


async def test_where_an_operator_migrates_a_start_makes_no_store(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match=f"coatcheck db upgrade --app {APP}"):
        await engine.careful().open()
    assert (await engine.state()).app is None
    assert list(tmp_path.iterdir()) == []


async def test_another_app_is_neither_examined_nor_upgraded(engine: Engine, world: World) -> None:
    for refused in (engine.database(no_fault).examine("bank"), engine.database(no_fault).upgrade("bank")):
        with pytest.raises(StoreRefused, match="belongs to app 'conformance', not to 'bank'"):
            await refused


async def test_a_role_that_may_change_no_table_serves_where_an_operator_migrates() -> None:
    owned = await postgres()
    await owned.upgrade()
    assert isinstance(owned.factory, PostgresFactory)
    dsn = owned.factory.dsn
    await shared_server().execute("CREATE ROLE server LOGIN")
    await shared_server().execute("GRANT USAGE ON SCHEMA coatcheck TO server", dsn)
    await shared_server().execute(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA coatcheck TO server", dsn
    )
    world = World(PostgresFactory(dsn=dsn.replace("postgres@", "server@")), events=True)
    await world.reopen()
    for status in sorted(Status, key=Status.QUEUED.__eq__):
        job = await job_in(world, status)
        assert await world.find(job.id) == job
    assert await world.store.read_outbox(100)
    await world.close()
