"""Fairness: nobody waits longer for a start than one turn of each other tenant, however much the others hand in."""

import asyncio

import pytest

from coatcheck.testing.conformance.world import DONE, OTHER_OPERATION, Suite, World, cancel


async def _flood(world: World, tenant: str, count: int) -> None:
    submissions = [world.submission(tenant=tenant) for _ in range(count)]
    await asyncio.gather(*map(world.store.accept_job, submissions))


async def _serve(world: World, count: int) -> list[str]:
    """The tenants of the next `count` starts, one claim after the other, each job done at once."""
    served: list[str] = []
    for _ in range(count):
        for claim in await world.claim():
            served.append(claim.job.tenant)
            await world.finish(claim, DONE)
    return served


_either_name_first = pytest.mark.parametrize(("a", "b"), [("a", "b"), ("b", "a")])


class TestFairness(Suite):
    """A floods; B must not notice. What they are called makes no difference."""

    @_either_name_first
    async def test_a_trickle_beside_a_flood_waits_at_most_one_turn(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 1000)
        slack = world.factory.capabilities.fairness_slack
        await _serve(world, 10)
        for _ in range(10):
            job = await world.accept(tenant=b)
            started = await _serve(world, 2 + slack)
            assert b in started
            assert (await world.find(job.id, b)).attempt == 1
            await _serve(world, 3)

    @_either_name_first
    async def test_a_batch_of_claims_is_shared_too(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 100)
        await _flood(world, b, 5)
        tenants = [claim.job.tenant for claim in await world.claim(slots=10)]
        assert tenants.count(b) >= 5 - world.factory.capabilities.fairness_slack

    async def test_every_waiting_tenant_has_its_turn(self, world: World) -> None:
        tenants = [f"t{n}" for n in range(8)]
        for tenant in tenants:
            await _flood(world, tenant, 4)
        slack = world.factory.capabilities.fairness_slack
        for _ in range(4):
            counts = await _serve(world, 8)
            assert len(set(counts)) >= 8 - slack

    @_either_name_first
    async def test_a_newcomer_does_not_catch_up_on_the_past(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 200)
        await _serve(world, 100)
        await _flood(world, b, 50)
        served = await _serve(world, 20)
        assert abs(served.count(b) - 10) <= 1 + world.factory.capabilities.fairness_slack

    @_either_name_first
    async def test_coming_back_after_a_rest_gives_no_advantage(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 200)
        await _flood(world, b, 1)
        await _serve(world, 100)
        await _flood(world, b, 50)
        served = await _serve(world, 20)
        assert abs(served.count(b) - 10) <= 1 + world.factory.capabilities.fairness_slack

    @_either_name_first
    async def test_having_worked_alone_gives_no_disadvantage(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 60)
        assert await _serve(world, 60) == [a] * 60
        await _flood(world, b, 30)
        await _serve(world, 1)
        await _flood(world, a, 30)
        served = await _serve(world, 20)
        assert abs(served.count(a) - 10) <= 1 + world.factory.capabilities.fairness_slack

    @_either_name_first
    async def test_leaving_and_coming_back_at_every_turn_gains_nothing(self, world: World, a: str, b: str) -> None:
        await _flood(world, a, 100)
        served: list[str] = []
        for _ in range(20):
            await _flood(world, b, 1)
            served += await _serve(world, 1)
        assert served.count(b) <= 11 + world.factory.capabilities.fairness_slack

    async def test_several_that_come_back_at_every_turn_starve_nobody(self, world: World) -> None:
        """Each of them finds the other still waiting at the lowest level: only being remembered stops them."""
        await _flood(world, "m", 100)
        served: list[str] = []
        await _flood(world, "a", 1)
        await _flood(world, "z", 1)
        for _ in range(30):
            latest = await _serve(world, 1)
            served += latest
            if latest != ["m"]:
                await _flood(world, latest[0], 1)
        assert served.count("m") >= 10 - world.factory.capabilities.fairness_slack

    @_either_name_first
    async def test_retries_and_delays_stand_in_line_like_everyone(self, world: World, a: str, b: str) -> None:
        for _ in range(30):
            await world.accept(tenant=a, delay_s=1)
        world.clock.advance(1)
        await _flood(world, b, 30)
        served = await _serve(world, 20)
        assert abs(served.count(b) - 10) <= 1 + world.factory.capabilities.fairness_slack

    async def test_operations_do_not_starve_each_other(self, world: World) -> None:
        await _flood(world, "a", 100)
        for _ in range(3):
            await world.accept(tenant="b", operation=OTHER_OPERATION)
        started = [claim.job.operation for _ in range(10) for claim in await world.claim()]
        assert started.count(OTHER_OPERATION) == 3

    async def test_cancelled_work_leaves_no_empty_turn(self, world: World) -> None:
        for _ in range(5):
            await cancel(world, await world.accept(tenant="b"))
        await _flood(world, "a", 3)
        assert await _serve(world, 3) == ["a"] * 3
