"""Costs: what attempts spend is counted once, under their lease; what a job's attempts ran is known to the next."""

import asyncio
from dataclasses import replace

import pytest
from msgspec import structs

from coatcheck.core import limits
from coatcheck.core.costs import SpendTotals, Window, window_of
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.outcome import Lost, Outcome, Released, RetryLater
from coatcheck.core.states import Status
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Claim, Prunable, Redriving, Spending
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    Suite,
    World,
    let_leases_run_out,
    stale,
)

DAY_S = 24 * 3600
CALL = 1_000_000


def _spending(world: World, claim: Claim, number: int, units: int = CALL, kind: str = "calls") -> Spending:
    return Spending(claim.lease, number, kind, units, window_of(world.now, DAY_S))


async def _spend(world: World, claim: Claim, number: int, units: int = CALL, kind: str = "calls") -> SpendTotals:
    return await world.store.spend(_spending(world, claim, number, units, kind))


class TestSpending(Suite):
    """Counted once, whatever happens."""

    async def test_units_add_up_for_the_job_and_for_its_tenant(self, world: World) -> None:
        claim = await world.start()
        assert await _spend(world, claim, 1) == SpendTotals(CALL, CALL, CALL)
        assert await _spend(world, claim, 2, 5) == SpendTotals(CALL + 5, CALL + 5, CALL + 5)
        assert await world.find(claim.job.id) == claim.job

    async def test_a_repeat_is_counted_once(self, world: World) -> None:
        claim = await world.start()
        answers = [await _spend(world, claim, number) for number in (1, 1, 2, 1, 2)]
        assert [totals.by_job for totals in answers] == [CALL, CALL, 2 * CALL, 2 * CALL, 2 * CALL]
        assert answers[-1].by_tenant == 2 * CALL

    async def test_repeats_that_meet_in_one_commit_are_counted_once(self, world: World) -> None:
        claim = await world.start()
        answers = await asyncio.gather(*(_spend(world, claim, 1) for _ in range(20)))
        assert {totals.by_job for totals in answers} == {CALL}

    async def test_nothing_is_a_spend_too(self, world: World) -> None:
        claim = await world.start()
        assert await _spend(world, claim, 1, 0) == SpendTotals(0, 0, 0)

    async def test_jobs_kinds_operations_and_tenants_keep_apart(self, world: World) -> None:
        one, two = await world.start(), await world.start()
        other = await world.start(operation=OTHER_OPERATION)
        stranger = await world.start(tenant="stranger")
        await _spend(world, one, 1, 1)
        await _spend(world, one, 2, 10, "tokens")
        assert await _spend(world, two, 1, 100) == SpendTotals(100, 101, 101)
        assert await _spend(world, other, 1, 1000) == SpendTotals(1000, 1000, 1101)
        assert await _spend(world, stranger, 1, 7) == SpendTotals(7, 7, 7)
        assert await _spend(world, one, 3, 0, "tokens") == SpendTotals(10, 10, 10)

    async def test_another_window_begins_with_nothing(self, world: World) -> None:
        claim = await world.start()
        window = window_of(world.now, DAY_S)
        left_ms = window.ends_at - world.now
        await _spend(world, claim, 1)
        await world.store.spend(structs.replace(_spending(world, claim, 2), window=Window(window.began_at, 3_600_000)))
        world.clock.advance((left_ms - 1) / 1000)
        assert await _spend(world, claim, 3) == SpendTotals(3 * CALL, 2 * CALL, 2 * CALL)
        world.clock.advance(0.001)
        assert await _spend(world, claim, 4) == SpendTotals(4 * CALL, CALL, CALL)

    @pytest.mark.parametrize("outcome", [FLAKY, Lost(is_blamed=False, is_suspect=True), Released()], ids=repr)
    async def test_the_next_attempt_spends_on_top_of_the_last(self, world: World, outcome: Outcome) -> None:
        claim = await world.start()
        await _spend(world, claim, 1)
        await _spend(world, claim, 2)
        await world.finish(claim, outcome)
        again = await world.restart(claim.job.id)
        assert await _spend(world, again, 1) == SpendTotals(3 * CALL, 3 * CALL, 3 * CALL)

    async def test_a_redrive_begins_with_nothing_of_its_own(self, world: World) -> None:
        claim = await world.start()
        await _spend(world, claim, 1)
        failed = await world.finish(claim, BROKEN)
        new = await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))
        assert not isinstance(new, str)
        again = await world.restart(new.id)
        assert await _spend(world, again, 1) == SpendTotals(CALL, 2 * CALL, 2 * CALL)

    async def test_sums_have_a_bound_of_their_own(self, world: World) -> None:
        claim = await world.start()
        largest = limits.UNITS_MAX * CALL
        most = limits.SPENT_MILLIONTHS_MAX // largest
        for number in range(1, most + 2):
            totals = await _spend(world, claim, number, largest)
        assert totals == SpendTotals(*[limits.SPENT_MILLIONTHS_MAX] * 3)

    async def test_whoever_lost_the_lease_spends_nothing(self, world: World) -> None:
        claim = await world.start()
        await _spend(world, claim, 1)
        with pytest.raises(LeaseLost):
            await world.store.spend(structs.replace(_spending(world, claim, 2), lease=stale(claim.lease)))
        assert await let_leases_run_out(world) == 1
        with pytest.raises(LeaseLost):
            await _spend(world, claim, 2)
        with pytest.raises(LeaseLost):
            await _spend(world, claim, 1)
        world.clock.advance(1)
        again = await world.restart(claim.job.id)
        assert await _spend(world, again, 1) == SpendTotals(2 * CALL, 2 * CALL, 2 * CALL)
        await world.finish(again, DONE)
        with pytest.raises(LeaseLost):
            await _spend(world, again, 2)

    async def test_what_a_job_spent_goes_with_it_and_what_its_tenant_spent_stays_for_its_time(
        self, world: World
    ) -> None:
        claim = await world.start()
        await _spend(world, claim, 1)
        job = await world.finish(claim, DONE)
        rows = await world.factory.count_rows()
        assert (rows["job_cost"], rows["spending"]) == (1, 1)
        await world.store.erase_job(TENANT, job.id, world.now)
        rows = await world.factory.count_rows()
        assert (rows["job_cost"], rows["spending"]) == (0, 1)
        began_at = window_of(world.now, DAY_S).began_at
        world.clock.advance(limits.SPENDING_KEPT_S - (world.now - began_at) / 1000 - 0.001)
        assert await world.store.prune_expired(Prunable.SPENDING, world.now, 10) == 0
        world.clock.advance(0.001)
        assert await world.store.prune_expired(Prunable.SPENDING, world.now, 10) == 1

    async def test_costs_of_jobs_that_retention_removes_go_too(self, world: World) -> None:
        claim = await world.start()
        await _spend(world, claim, 1)
        await world.finish(claim, DONE)
        world.clock.advance(POLICY.retention.succeeded_s)
        assert await world.store.prune_expired(Prunable.JOBS, world.now, 10) == 1
        assert (await world.factory.count_rows())["job_cost"] == 0


class TestProcessingTime(Suite):
    """All attempts of a job together."""

    @pytest.mark.parametrize("outcome", [FLAKY, RetryLater(0.0), Released(), Lost(True, False)], ids=repr)
    async def test_no_attempt_follows_once_it_is_used_up(self, world: World, outcome: Outcome) -> None:
        world.policies[OPERATION] = replace(POLICY, processing_max_s=10.0)
        claim = await world.start(max_attempts=9)
        world.clock.advance(4)
        assert (await world.finish(claim, outcome)).status is Status.QUEUED
        world.clock.advance(100)
        again = await world.restart(claim.job.id)
        assert (claim.ran_ms, again.ran_ms) == (0, 4000)
        world.clock.advance(5.999)
        assert (await world.finish(again, outcome)).status is Status.QUEUED
        last = await world.restart(claim.job.id)
        assert last.ran_ms == 9999
        world.clock.advance(0.001)
        job = await world.finish(last, outcome)
        assert job.status is Status.FAILED
        assert job.error is not None
        assert (job.error.category, job.error.code) == (ErrorCategory.LIMIT_EXCEEDED, "processing-max")
        assert job.dead_lettered_at == world.now
        assert await world.find(job.id) == job

    async def test_work_that_is_done_is_done(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, processing_max_s=10.0)
        claim = await world.start()
        world.clock.advance(11)
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED

    async def test_time_under_a_lease_that_ran_out_counts(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, processing_max_s=10.0)
        claim = await world.start()
        assert await let_leases_run_out(world) == 1
        job = await world.find(claim.job.id)
        assert job.status is Status.FAILED
        assert job.error is not None
        assert job.error.category is ErrorCategory.LIMIT_EXCEEDED

    async def test_a_redrive_has_all_of_it_again(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, processing_max_s=10.0)
        claim = await world.start()
        world.clock.advance(10)
        failed = await world.finish(claim, FLAKY)
        new = await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))
        assert not isinstance(new, str)
        assert (await world.restart(new.id)).ran_ms == 0
