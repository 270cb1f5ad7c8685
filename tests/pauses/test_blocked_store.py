"""While the store writes for nobody, nobody can keep a lease: that silence is held against no one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from coatcheck.core.policy import Policies
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Beat, BeatAnswer, Claim
from coatcheck.stores.sqlite.turnstile import Turnstile
from coatcheck.testing.conformance.world import LEASE_S, World, rescue
from harness.sqlite_factory import SqliteFactory


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(SqliteFactory(tmp_path / "jobs.db"), events=False)
    await world.reopen()
    yield world
    await world.close()


async def is_kept(world: World, claim: Claim) -> bool:
    return list(await world.store.extend_leases([Beat(claim.lease)], world.now)) == [BeatAnswer.GO_ON]


async def let_silence_pass(world: World) -> int:
    """Looks for a lease time, without a heartbeat; returns how many attempts were rescued."""
    rescued = await rescue(world)
    for _ in range(5):
        world.clock.advance(LEASE_S / 5)
        rescued += await rescue(world)
    return rescued


async def test_a_writer_who_keeps_the_turn_makes_no_lease_run_out(world: World, tmp_path: Path) -> None:
    claim = await world.start()
    assert await rescue(world) == 0
    turnstile = Turnstile(tmp_path / "jobs.db")
    with turnstile:
        looks = []
        for _ in range(6):
            world.clock.advance(LEASE_S / 5)
            looks.append(asyncio.create_task(rescue(world)))
            await asyncio.sleep(0)
    turnstile.close()
    assert await asyncio.gather(*looks) == [0] * 6
    assert await is_kept(world, claim)
    assert await let_silence_pass(world) == 1
    assert not await is_kept(world, claim)


async def test_a_rescue_that_could_not_be_written_begins_to_count_anew(world: World) -> None:
    claim = await world.start()
    await rescue(world)
    for _ in range(4):
        world.clock.advance(LEASE_S / 5)
        await rescue(world)
    world.clock.advance(LEASE_S / 5)
    # The look commits nothing; the rescue is the next to pass.
    world.faults.raise_at(
        "before-commit", apsw.FullError("database or disk is full"), world.faults.count("before-commit") + 2
    )
    with pytest.raises(StoreUnavailable):
        await world.store.rescue_leases(Policies(world.policies), world.now, 100)
    assert await rescue(world) == 0
    assert await is_kept(world, claim)
    assert await let_silence_pass(world) == 1
