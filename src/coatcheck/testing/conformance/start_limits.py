"""Limits on running jobs, weights and shares: exact over all claimers, and in nobody's way."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from coatcheck.core.limits import COMMIT_BATCH_MAX
from coatcheck.core.outcome import Outcome, Released
from coatcheck.core.quotas import ALL, EACH, LimitBook, LimitKey, LimitName
from coatcheck.core.tenancy import Controls, Revocation, TenantControl
from coatcheck.core.terms import Terms
from coatcheck.store.contract import Store
from coatcheck.store.records import Claim, ClaimRequest, Finishing, HeldTurns
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    OTHER_OPERATION,
    Suite,
    World,
    cancel,
    let_leases_run_out,
)

CROWD = 1_000


def running_terms(limits: Mapping[LimitKey, float | None]) -> Terms:
    return Terms(book=LimitBook(limits))


def at_most(most: float, tenant: str = "a", operation: str = ALL) -> Terms:
    """Terms under which so many of one tenant's jobs may run at once."""
    return running_terms({(LimitName.RUNNING, tenant, operation): most})


def weighing(**weights: float) -> Terms:
    """Terms under which these tenants have these weights."""
    return Terms(Controls(tenants={name: TenantControl(name, weight) for name, weight in weights.items()}))


async def flood(world: World, tenant: str, count: int, operation: str = OPERATION) -> None:
    submissions = [world.submission(tenant=tenant, operation=operation) for _ in range(count)]
    await asyncio.gather(*map(world.store.accept_job, submissions))


async def a_crowd_held(world: World, count: int) -> Terms:
    """So many tenants with a job each; the terms under which none of them may start."""
    crowd = [f"held-{n:05}" for n in range(count)]
    for start in range(0, count, COMMIT_BATCH_MAX):
        await asyncio.gather(*(flood(world, tenant, 1) for tenant in crowd[start : start + COMMIT_BATCH_MAX]))
    return Terms(Controls(tenants={name: TenantControl(name, is_paused=True) for name in crowd}))


async def end(world: World, claim: Claim, outcome: Outcome = DONE, store: Store | None = None) -> None:
    """End an attempt of a tenant that has a limit."""
    finishing = Finishing(claim.lease, outcome, world.policies[claim.job.operation], 0.5, is_limited=True)
    await (store or world.store).finish_attempt(finishing, world.now)


async def restore(world: World, terms: Terms) -> int:
    """One round of the sweep over held turns."""
    return (await world.store.restore_turns(terms, None, 100)).restored


def tenants(claims: list[Claim]) -> list[str]:
    return [claim.job.tenant for claim in claims]


class TestStartLimits(Suite):
    """One tenant with a limit, and others that must not notice."""

    @pytest.mark.parametrize("most", [0, 1, 3])
    async def test_as_many_run_as_the_limit_says(self, world: World, most: int) -> None:
        await flood(world, "a", most + 2)
        terms = at_most(most)
        assert len(await world.claim(10, terms=terms)) == most
        assert await world.claim(10, terms=terms) == []
        assert (await world.store.measure_queues(world.now))[0].ready == 2

    async def test_claims_of_one_add_up(self, world: World) -> None:
        await flood(world, "a", 5)
        claimed = [len(await world.claim(1, terms=at_most(3))) for _ in range(5)]
        assert claimed == [1, 1, 1, 0, 0]

    async def test_one_that_may_start_none_is_in_nobodys_way(self, world: World) -> None:
        await flood(world, "a", 5)
        await flood(world, "b", 5)
        assert Counter(tenants(await world.claim(4, terms=at_most(1)))) == {"a": 1, "b": 3}
        assert tenants(await world.claim(4, terms=at_most(1))) == ["b", "b"]

    async def test_a_limit_holds_in_its_operation_or_over_all(self, world: World) -> None:
        terms = running_terms({(LimitName.RUNNING, EACH, OPERATION): 2, (LimitName.RUNNING, EACH, ALL): 3})
        for operation in (OPERATION, OTHER_OPERATION):
            await flood(world, "a", 4, operation)
        await flood(world, "b", 4)
        started = Counter((claim.job.tenant, claim.job.operation) for claim in await world.claim(20, terms=terms))
        assert started["a", OPERATION] + started["a", OTHER_OPERATION] == 3
        assert started["a", OPERATION] <= 2
        assert started["b", OPERATION] == 2

    @pytest.mark.parametrize("outcome", [DONE, BROKEN, FLAKY, Released()], ids=["done", "failed", "again", "released"])
    async def test_a_job_that_ends_lets_the_next_one_start(self, world: World, outcome: Outcome) -> None:
        await flood(world, "a", 2)
        (claim,) = await world.claim(5, terms=at_most(1))
        assert await world.claim(5, terms=at_most(1)) == []
        await end(world, claim, outcome)
        assert len(await world.claim(5, terms=at_most(1))) == 1
        assert await world.claim(5, terms=at_most(1)) == []

    async def test_a_cancelled_job_runs_until_it_ends(self, world: World) -> None:
        await flood(world, "a", 2)
        (claim,) = await world.claim(5, terms=at_most(1))
        await cancel(world, claim.job)
        assert await world.claim(5, terms=at_most(1)) == []
        await end(world, claim, FLAKY)
        assert len(await world.claim(5, terms=at_most(1))) == 1

    async def test_a_lost_job_runs_until_it_is_rescued(self, world: World) -> None:
        await flood(world, "a", 2)
        await world.claim(5, terms=at_most(1))
        assert await world.claim(5, terms=at_most(1)) == []
        assert await restore(world, at_most(1)) == 0
        assert await let_leases_run_out(world) == 1
        assert await restore(world, at_most(1)) == 1
        assert len(await world.claim(5, terms=at_most(1))) == 1

    async def test_a_job_that_is_too_late_takes_no_place(self, world: World) -> None:
        for _ in range(3):
            await world.accept(tenant="a", deadline_at=world.now + 1000)
        await flood(world, "a", 3)
        world.clock.advance(1)
        assert len(await world.claim(5, terms=at_most(2))) == 2

    async def test_a_raised_limit_is_seen_by_the_sweep_and_a_lowered_one_at_once(self, world: World) -> None:
        await flood(world, "a", 9)
        claims = await world.claim(9, terms=at_most(2))
        assert await world.claim(9, terms=at_most(2)) == []
        assert await restore(world, at_most(4)) == 1
        claims += await world.claim(9, terms=at_most(4))
        assert len(claims) == 4
        await end(world, claims.pop())
        assert await world.claim(9, terms=at_most(1)) == []
        for claim in claims:
            await end(world, claim)
        assert len(await world.claim(9, terms=at_most(1))) == 1

    async def test_more_work_for_a_held_turn_does_not_bring_it_back(self, world: World) -> None:
        await flood(world, "a", 2)
        await world.claim(1, terms=at_most(1))
        assert await world.claim(1, terms=at_most(1)) == []
        await flood(world, "a", 3)
        assert await world.claim(5, terms=at_most(1)) == []
        await restore(world, Terms())
        assert len(await world.claim(9)) == 4

    async def test_a_held_turn_whose_jobs_are_gone_is_as_good_as_new(self, world: World) -> None:
        terms = at_most(0)
        job = await world.accept(tenant="a")
        assert await world.claim(1, terms=terms) == []
        await cancel(world, job)
        await flood(world, "a", 1)
        assert len(await world.claim(1)) == 1


class TestHeldTurns(Suite):
    """Tenants whose jobs may not start, by whatever was decided about them."""

    @pytest.mark.parametrize(
        ("control", "may_start"),
        [
            (TenantControl("a", is_paused=True), False),
            (TenantControl("a", revocation=Revocation.QUARANTINE), False),
            (TenantControl("a", revocation=Revocation.CANCEL), False),
            (TenantControl("a", revocation=Revocation.FINISH), True),
        ],
        ids=["paused", "quarantined", "to be cancelled", "to be finished"],
    )
    async def test_whether_jobs_start_follows_from_what_was_decided(
        self, world: World, control: TenantControl, may_start: bool
    ) -> None:
        await flood(world, "a", 2)
        await flood(world, "b", 2)
        terms = Terms(Controls(tenants={"a": control}))
        assert set(tenants(await world.claim(9, terms=terms))) == ({"a", "b"} if may_start else {"b"})
        assert await restore(world, terms) == 0
        assert await restore(world, Terms()) == (0 if may_start else 1)
        assert len(await world.claim(9)) == (0 if may_start else 2)

    async def test_a_crowd_of_them_at_the_head_holds_up_nobody(self, world: World) -> None:
        terms = await a_crowd_held(world, CROWD)
        await flood(world, "zz", 3)
        looks = 1
        while not (claims := await world.claim(1, terms=terms)):
            looks += 1
            assert looks <= 3, "each of the crowd is looked at once"
        assert tenants(claims) == ["zz"]
        assert tenants(await world.claim(1, terms=terms)) == ["zz"]

    async def test_the_sweep_goes_through_them_in_batches(self, world: World) -> None:
        crowd = [f"t{n}" for n in range(5)]
        for tenant in crowd:
            await flood(world, tenant, 1)
        paused = {name: TenantControl(name, is_paused=True) for name in crowd}
        assert await world.claim(9, terms=Terms(Controls(tenants=paused))) == []
        kept = Terms(Controls(tenants={name: paused[name] for name in crowd[:3]}))
        first = await world.store.restore_turns(kept, None, 2)
        assert first == HeldTurns((OPERATION, "t1"), 0)
        second = await world.store.restore_turns(kept, first.last, 2)
        assert second == HeldTurns((OPERATION, "t3"), 1)
        assert await world.store.restore_turns(kept, second.last, 2) == HeldTurns(None, 1)
        assert sorted(tenants(await world.claim(9, terms=kept))) == ["t3", "t4"]

    async def test_being_held_gives_no_advantage_and_no_disadvantage(self, world: World) -> None:
        await flood(world, "a", 40)
        await flood(world, "b", 60)
        paused = Terms(Controls(tenants={"a": TenantControl("a", is_paused=True)}))
        for _ in range(30):
            assert tenants(await world.claim(1, terms=paused)) == ["b"]
        await restore(world, Terms())
        served = [tenant for _ in range(20) for tenant in tenants(await world.claim(1))]
        assert abs(served.count("a") - 10) <= 1 + world.factory.capabilities.fairness_slack

    async def test_a_newcomer_among_held_ones_is_level_with_them(self, world: World) -> None:
        await flood(world, "a", 60)
        await world.claim(30)
        paused = Terms(Controls(tenants={"a": TenantControl("a", is_paused=True)}))
        assert await world.claim(1, terms=paused) == []
        await flood(world, "b", 30)
        await restore(world, Terms())
        served = [tenant for _ in range(20) for tenant in tenants(await world.claim(1))]
        assert abs(served.count("a") - 10) <= 1 + world.factory.capabilities.fairness_slack


class TestWeights(Suite):
    """A tenant of weight 3 has three turns where others have one."""

    @pytest.mark.parametrize(("a", "b"), [(3.0, 1.0), (1.0, 3.0), (0.5, 1.0), (4.0, 0.5)])
    @pytest.mark.parametrize("slots", [1, 7])
    async def test_turns_are_shared_by_weight(self, world: World, a: float, b: float, slots: int) -> None:
        await flood(world, "a", 70)
        await flood(world, "b", 70)
        served: list[str] = []
        while len(served) < 70:
            served += tenants(await world.claim(slots, terms=weighing(a=a, b=b)))
        assert abs(served.count("a") - len(served) * a / (a + b)) <= 2 + world.factory.capabilities.fairness_slack

    async def test_a_weight_gives_nothing_to_those_who_wait_for_nothing(self, world: World) -> None:
        await flood(world, "b", 5)
        assert tenants(await world.claim(5, terms=weighing(a=100.0))) == ["b"] * 5


class TestShares(Suite):
    """A bound on what one tenant may have of one worker."""

    async def test_a_tenant_gets_its_part_and_others_the_rest(self, world: World) -> None:
        await flood(world, "a", 9)
        await flood(world, "b", 1)
        shares = {OPERATION: 3}
        assert Counter(tenants(await world.claim(8, shares=shares))) == {"a": 3, "b": 1}
        here = {(OPERATION, "a"): 3, (OPERATION, "b"): 1}
        assert await world.claim(4, shares=shares, here=here) == []
        await flood(world, "c", 5)
        assert tenants(await world.claim(4, shares=shares, here=here)) == ["c"] * 3

    async def test_what_it_has_elsewhere_does_not_count_and_nothing_is_held(self, world: World) -> None:
        await flood(world, "a", 6)
        await flood(world, "a", 3, OTHER_OPERATION)
        here = {(OPERATION, "a"): 1, (OTHER_OPERATION, "a"): 9}
        claims = await world.claim(20, shares={OPERATION: 2}, here=here)
        assert Counter(claim.job.operation for claim in claims) == {OPERATION: 1, OTHER_OPERATION: 3}
        assert len(await world.claim(9)) == 5


class TestStartLimitsTogether(Suite):
    """Several claimers, each with a store of its own over one database."""

    async def _stores(self, world: World) -> list[Store]:
        return [world.store, *[await world.another_store() for _ in range(3)]]

    async def test_never_more_than_the_limit_and_nothing_is_left_behind(self, world: World) -> None:
        stores, terms = await self._stores(world), at_most(3)
        await flood(world, "a", 40)
        request = ClaimRequest("worker", 2, dict.fromkeys(world.policies, 2), world.policies, terms)
        running = most = done = 0

        async def work(store: Store) -> None:
            nonlocal running, most, done
            while done < 40:
                claims = (await store.claim_ready(request, world.now)).claims
                running += len(claims)
                most = max(most, running)
                for claim in claims:
                    running -= 1
                    await end(world, claim, store=store)
                    done += 1
                await asyncio.sleep(0)

        await asyncio.gather(*map(work, stores))
        assert done == 40
        assert 1 <= most <= 3

    async def test_places_that_are_free_are_found(self, world: World) -> None:
        """However a claim, an end and the holding of a turn meet, the next claims find every free place."""
        stores, terms = await self._stores(world), at_most(2)
        await flood(world, "a", 60)
        held = await world.claim(2, terms=terms)
        request = ClaimRequest("worker", 1, dict.fromkeys(world.policies, 1), world.policies, terms)
        for _ in range(25):
            ended = held.pop()
            answers = await asyncio.gather(
                end(world, ended, store=stores[1]),
                *(store.claim_ready(request, world.now) for store in stores),
            )
            held += [claim for answer in answers if answer is not None for claim in answer.claims]
            assert len(held) <= 2
            while len(held) < 2:
                again = await stores[2].claim_ready(request, world.now)
                held += again.claims
                assert again.claims or again.is_crowded, "a place is free, and nobody finds it"
