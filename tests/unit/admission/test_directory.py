"""What a process knows of the controls is never older than it says."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.admission.directory import CONFIRMED_S, POLL_S, Directory
from coatcheck.core.quotas import EACH, LimitName
from coatcheck.core.tenancy import Controls, LimitOverride, OperationMode, Revocation, TenantControl
from coatcheck.store.controls import (
    AddTenant,
    AuditEntry,
    ControlChange,
    RevokeTenant,
    SetLimit,
    SetMode,
    Tenant,
)
from coatcheck.store.errors import StoreUnavailable
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.waiting import wait_until_async

QUEUED = (LimitName.QUEUED.value, EACH, "")
PAUSED = SetMode("reports", OperationMode.PAUSED)


class AwayStore(SqliteStore):
    """Cannot be read while it is away; counts what is asked."""

    is_away = False
    asked = 0
    read = 0

    async def read_controls_version(self) -> int:
        self.asked += 1
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().read_controls_version()

    async def read_controls(self) -> Controls:
        self.read += 1
        return await super().read_controls()


@dataclass
class World:
    store: AwayStore
    clock: ManualClock
    directory: Directory

    async def change(self, change: ControlChange) -> None:
        entry = AuditEntry(self.clock.now(), "test", "here", "change", "something")
        assert await self.store.change_controls(change, entry)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    store = AwayStore(SqliteConfig(tmp_path / "jobs.db", "directory"), clock)
    await store.open()
    yield World(store, clock, Directory(store, clock, {QUEUED: 5.0}))
    await store.close()


def test_a_decision_is_in_force_within_a_second() -> None:
    assert CONFIRMED_S < 1
    assert 2 * POLL_S < CONFIRMED_S, "a poll that comes late once does not stop anybody"


async def test_what_is_not_known_is_as_usual(world: World) -> None:
    directory = world.directory
    assert directory.tenant("anybody") == TenantControl("anybody")
    assert directory.mode("anything") is OperationMode.OPEN
    assert directory.book.values == {QUEUED: 5.0}
    assert not directory.is_confirmed


async def test_it_knows_what_was_decided(world: World) -> None:
    directory = world.directory
    await world.change(AddTenant(Tenant("acme", world.clock.now())))
    await world.change(RevokeTenant("acme", Revocation.QUARANTINE, world.clock.now()))
    await world.change(SetLimit(LimitOverride(*QUEUED, None)))
    await world.change(PAUSED)
    await directory.confirmed()
    assert directory.tenant("acme").revocation is Revocation.QUARANTINE
    assert directory.mode("reports") is OperationMode.PAUSED
    assert directory.book.values == {QUEUED: None}


async def test_it_asks_again_once_its_knowledge_is_too_old(world: World) -> None:
    directory = world.directory
    await directory.confirmed()
    await world.change(PAUSED)
    world.clock.advance(CONFIRMED_S)
    assert directory.is_confirmed
    await directory.confirmed()
    assert directory.mode("reports") is OperationMode.OPEN
    world.clock.advance(0.001)
    assert not directory.is_confirmed
    await directory.confirmed()
    assert directory.is_confirmed
    assert directory.mode("reports") is OperationMode.PAUSED


async def test_it_reads_only_what_changed(world: World) -> None:
    told: list[OperationMode] = []
    world.directory.on_change(lambda: told.append(world.directory.mode("reports")))
    for _ in range(3):
        world.clock.advance(1)
        await world.directory.confirmed()
    assert (world.store.asked, world.store.read, told) == (3, 0, [])
    await world.change(PAUSED)
    for _ in range(3):
        world.clock.advance(1)
        await world.directory.confirmed()
    assert (world.store.read, told) == (1, [OperationMode.PAUSED])


async def test_nobody_acts_on_what_is_too_old_while_the_store_is_away(world: World) -> None:
    await world.directory.confirmed()
    world.store.is_away = True
    world.clock.advance(CONFIRMED_S)
    await world.directory.confirmed()
    world.clock.advance(0.001)
    with pytest.raises(StoreUnavailable):
        await world.directory.confirmed()
    world.store.is_away = False
    await world.directory.confirmed()


async def test_it_does_not_start_without_having_read(world: World) -> None:
    world.store.is_away = True
    with pytest.raises(StoreUnavailable):
        await world.directory.start()


async def test_a_hint_makes_it_read_at_once_and_time_does_as_well(world: World) -> None:
    directory = world.directory
    await directory.start()
    try:
        await world.change(PAUSED)
        world.clock.advance(0.001)
        directory.wake()
        await wait_until_async(lambda: directory.mode("reports") is OperationMode.PAUSED, "the hint to be followed")
        await world.change(SetMode("reports", OperationMode.DRAINING))
        world.clock.advance(0.001)
        await wait_until_async(lambda: directory.mode("reports") is OperationMode.DRAINING, "the next poll")
    finally:
        await directory.stop()
