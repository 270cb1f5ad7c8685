"""The database's clock: by it leases end, and by it hosts agree on the time. It may be wrong, or be set."""

from dataclasses import dataclass

import asyncpg
import pytest

from coatcheck.core.states import Status
from coatcheck.store.clock import Machine, SystemClock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Beat, BeatAnswer, IdempotencyKey
from coatcheck.stores.postgres import connection as connection_module
from coatcheck.stores.postgres import store as store_module
from coatcheck.stores.postgres.database_wall import DatabaseWall
from coatcheck.stores.postgres.lease_watch import LeaseWatch
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.waiting import wait_until_async
from harness.postgres_server import shared_server
from harness.postgres_work import POLICIES, TENANT, accept, claim, clock, opened

LEASE_S = 15.0
LONG_UP_MS = -1_000_000


@dataclass
class World:
    """A rescuer that looks, and a database whose clock goes beside its own."""

    clock: ManualClock
    watch: LeaseWatch
    database_ms: int = 0
    failed_at_s: float | None = None
    started_ms: int = LONG_UP_MS

    def look(self, after_s: float = 0.0, jump_s: float = 0.0) -> bool:
        self.clock.advance(after_s)
        self.database_ms += round((after_s + jump_s) * 1000)
        self.watch.note(self.database_ms, self.started_ms, self.failed_at_s)
        return self.watch.may_rescue


@pytest.fixture
def world() -> World:
    manual = ManualClock()
    manual.advance(1000)
    return World(manual, LeaseWatch(LEASE_S, manual))


def test_a_rescuer_may_act_at_its_first_look_and_however_rarely_it_looks(world: World) -> None:
    assert [world.look(), world.look(1), world.look(3600)] == [True, True, True]


def test_after_the_server_started_every_lease_has_its_whole_time(world: World) -> None:
    world.started_ms = 0
    assert [world.look(), world.look(LEASE_S - 0.1), world.look(0.2)] == [False, False, True]


def test_after_it_could_not_be_reached_every_lease_has_its_whole_time(world: World) -> None:
    world.look()
    world.failed_at_s = world.clock.monotonic_s() + 1
    assert [world.look(2), world.look(LEASE_S - 1.1), world.look(0.2)] == [False, False, True]


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_after_its_clock_was_set_every_lease_has_its_whole_time(world: World, jump_s: float) -> None:
    assert world.look()
    assert not world.look(1, jump_s)
    assert world.watch.was_set_back == (jump_s < 0)
    assert [world.look(LEASE_S - 0.1), world.look(0.2)] == [False, True]
    assert not world.watch.was_set_back


def test_a_clock_that_drifts_is_no_jump(world: World) -> None:
    assert all(world.look(1, 0.5) for _ in range(100))


async def test_a_lease_ends_by_the_clock_of_the_database() -> None:
    dsn = await shared_server().new_database()
    async with opened(dsn, lease_s=0.2) as store:
        job_id = await accept(store)
        await claim(store)

        async def is_rescued() -> bool:
            return await store.rescue_leases(POLICIES, clock.now(), 10) == 1

        await wait_until_async(is_rescued, "the lease to run out")
        job = await store.find_job(TENANT, job_id, clock.now())
        assert getattr(job, "status", None) is Status.QUEUED


async def test_leases_given_before_the_clock_was_set_back_do_not_last_for_ever() -> None:
    dsn = await shared_server().new_database()
    async with opened(dsn, lease_s=0.2) as store:
        await accept(store)
        await claim(store)
        await shared_server().execute("UPDATE coatcheck.lease SET ends_at = ends_at + 3600000", dsn)
        assert await store.rescue_leases(POLICIES, clock.now(), 10) == 0
        # As if the look before had been an hour later by the database's clock.
        assert store._watch._last is not None
        store._watch._last = (store._watch._last[0] + 3_600_000, store._watch._last[1])

        async def is_rescued() -> bool:
            return await store.rescue_leases(POLICIES, clock.now(), 10) == 1

        await wait_until_async(is_rescued, "the lease to run out")


class TestDatabaseWall:
    """Hosts whose clocks differ."""

    def _wall(self, host_ns: int) -> DatabaseWall:
        return DatabaseWall(Machine(wall_ns=lambda: host_ns, running_ns=lambda: 2_000_000))

    @pytest.mark.parametrize("off_s", [-3600, 0.06, 3600])
    def test_a_wrong_host_follows_the_database(self, off_s: float) -> None:
        database_us = 1_700_000_000_000_000
        wall = self._wall(database_us * 1_000 + round(off_s * 1e9))
        wall.note(2_000_000, database_us)
        assert wall.wall_ns() == database_us * 1_000

    @pytest.mark.parametrize("off_ns", [-49_000_000, 49_000_000])
    def test_what_is_too_small_to_matter_is_left_alone(self, off_ns: int) -> None:
        database_us = 1_700_000_000_000_000
        wall = self._wall(database_us * 1_000 + off_ns)
        wall.note(2_000_000, database_us)
        assert wall.wall_ns() == database_us * 1_000 + off_ns

    async def test_a_store_tells_its_clock_when_it_is_opened(self) -> None:
        hour_ns = 3_600_000_000_000
        real = SystemClock()
        wall = DatabaseWall(Machine(wall_ns=lambda: real.now_us() * 1_000 - hour_ns))
        async with opened(await shared_server().new_database(), wall=wall):
            assert abs(wall.wall_ns() - real.now_us() * 1_000) < hour_ns // 1_000

    @pytest.mark.parametrize("listens", [False, True])
    async def test_a_host_whose_clock_is_set_follows_however_busy_it_is(
        self, listens: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_module, "LOOK_INTERVAL_S", 0.05)
        hour_ns = 3_600_000_000_000
        real = SystemClock()
        off_ns = -hour_ns
        wall = DatabaseWall(Machine(wall_ns=lambda: real.now_us() * 1_000 + off_ns))
        dsn = await shared_server().new_database()
        async with opened(dsn, wall=wall, listen_dsn=dsn if listens else None) as store:
            off_ns = 0
            assert abs(wall.wall_ns() - real.now_us() * 1_000) > hour_ns // 2

            async def follows() -> bool:
                await accept(store)
                return abs(wall.wall_ns() - real.now_us() * 1_000) < hour_ns // 1_000

            await wait_until_async(follows, "the clock to be put right")


async def test_a_statement_that_waits_too_long_for_a_lock_holds_up_no_rescue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection_module.SESSION, "lock_timeout", "100ms")
    dsn = await shared_server().new_database()
    async with opened(dsn, lease_s=0.2) as store:
        await accept(store)
        await claim(store)
        other = await asyncpg.connect(dsn)
        async with other.transaction():
            await other.execute("LOCK TABLE coatcheck.idempotency_key")
            with pytest.raises(StoreUnavailable):
                await accept(store, key=IdempotencyKey("k", "sha256", "f" * 64, clock.now() + 60_000))
        await other.close()
        assert store._connections.failed_at_s is None


async def test_while_leases_could_not_be_kept_nobody_is_rescued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection_module.SESSION, "lock_timeout", "100ms")
    dsn = await shared_server().new_database()
    async with opened(dsn, lease_s=30.0) as store:
        await accept(store)
        (running,) = await claim(store)
        other = await asyncpg.connect(dsn)
        async with other.transaction():
            await other.execute("LOCK TABLE coatcheck.lease")
            with pytest.raises(StoreUnavailable):
                await store.extend_leases([Beat(running.lease)], clock.now())
        await other.execute("UPDATE coatcheck.lease SET ends_at = 0")
        assert await store.rescue_leases(POLICIES, clock.now(), 10) == 0
        assert await store.extend_leases([Beat(running.lease)], clock.now()) == [BeatAnswer.GO_ON]
        await other.close()
