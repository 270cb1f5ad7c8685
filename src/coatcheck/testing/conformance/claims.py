"""Claims: each job to one worker, in order, not before its time, within every bound a worker or policy sets."""

import asyncio
from dataclasses import replace

from msgspec import structs

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.outcome import Released
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.records import CancelAnswer, CancelDisposition, ClaimRequest, Promotion
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
)


class TestClaims(Suite):
    """Who gets which job."""

    async def test_an_empty_store_gives_nothing(self, world: World) -> None:
        answer = await world.claims(slots=10)
        assert list(answer.claims) == []
        assert answer.next_due_at is None

    async def test_a_claim_hands_over_the_running_job(self, world: World) -> None:
        job = await world.accept()
        world.clock.advance(3)
        (claim,) = await world.claim()
        assert claim.job == structs.replace(
            job,
            status=Status.RUNNING,
            version=job.version + 1,
            attempt=1,
            counted_attempts=1,
            started_at=world.now,
            updated_at=world.now,
        )
        assert (claim.lease.job_id, claim.lease.attempt) == (job.id, 1)
        assert claim.lease.token
        assert not claim.is_alone
        assert await world.find(job.id) == claim.job
        assert await world.claim() == []

    async def test_first_come_first_served(self, world: World) -> None:
        ids = [(await world.accept()).id for _ in range(5)]
        first = [claim.job.id for claim in await world.claim(slots=3)]
        second = [claim.job.id for claim in await world.claim(slots=3)]
        assert first + second == ids

    async def test_priority_goes_before_age_within_a_tenant(self, world: World) -> None:
        if not world.factory.capabilities.has_priority:
            return
        made = [(priority, (await world.accept(priority=priority)).id) for priority in (5, 9, 0, 5, 0)]
        claimed = [claim.job.id for claim in await world.claim(slots=5)]
        assert claimed == [job_id for _, job_id in sorted(made, key=lambda item: item[0])]

    async def test_tenants_take_turns(self, world: World) -> None:
        for _ in range(3):
            for tenant in ("a", "b", "c"):
                await world.accept(tenant=tenant)
        claims = [claim for _ in range(9) for claim in await world.claim()]
        tenants = [claim.job.tenant for claim in claims]
        assert [sorted(tenants[start : start + 3]) for start in (0, 3, 6)] == [["a", "b", "c"]] * 3

    async def test_slots_bound_the_answer(self, world: World) -> None:
        for _ in range(4):
            await world.accept()
            await world.accept(operation=OTHER_OPERATION)
        assert len(await world.claim(slots=3)) == 3
        shares = {OPERATION: 1, OTHER_OPERATION: 2}
        operations = [claim.job.operation for claim in await world.claim(slots=8, slots_by_operation=shares)]
        assert operations.count(OPERATION) <= 1
        assert operations.count(OTHER_OPERATION) <= 2
        assert await world.claim(slots=8, slots_by_operation={OPERATION: 0, OTHER_OPERATION: 0}) == []
        assert await world.claim(slots=0) == []
        assert len(await world.claim(slots=8)) == 8 - 3 - len(operations)

    async def test_an_operation_of_another_worker_is_left_alone(self, world: World) -> None:
        job = await world.accept(operation="unheard-of")
        world.clock.advance(10)
        assert await world.claim(slots=5) == []
        assert await world.find(job.id) == job
        world.policies["unheard-of"] = POLICY
        assert [claim.job.id for claim in await world.claim(slots=5)] == [job.id]

    async def test_one_full_operation_does_not_hold_up_another(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, concurrency_max=1)
        for _ in range(10):
            await world.accept()
        await world.accept(operation=OTHER_OPERATION)
        operations = [claim.job.operation for claim in await world.claim(slots=5)]
        assert sorted(operations) == [OTHER_OPERATION, OPERATION]


class TestDoubleClaims(Suite):
    """Many claimers at once."""

    async def test_parallel_claims_give_each_job_once(self, world: World) -> None:
        ids = {(await world.accept()).id for _ in range(40)}
        stores = [world.store, await world.another_store()]
        requests = [ClaimRequest(f"worker-{n}", 3, {OPERATION: 3}, world.policies) for n in range(30)]
        answers = await asyncio.gather(
            *(stores[n % 2].claim_ready(request, world.now) for n, request in enumerate(requests))
        )
        claims = [claim for answer in answers for claim in answer.claims]
        assert len(claims) == len(ids)
        assert {claim.job.id for claim in claims} == ids
        assert len({claim.lease.token for claim in claims}) == len(ids)

    async def test_parallel_claims_keep_to_the_concurrency(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, concurrency_max=7)
        for _ in range(40):
            await world.accept()
        stores = [world.store, await world.another_store()]
        requests = [ClaimRequest(f"worker-{n}", 2, {OPERATION: 2}, world.policies) for n in range(20)]
        answers = await asyncio.gather(
            *(stores[n % 2].claim_ready(request, world.now) for n, request in enumerate(requests))
        )
        assert sum(len(answer.claims) for answer in answers) == 7

    async def test_a_claim_and_a_cancel_never_both_win(self, world: World) -> None:
        jobs = [await world.accept() for _ in range(30)]
        policies = Policies(world.policies)
        cancels = [world.store.cancel_job(TENANT, job.id, None, policies, world.now) for job in jobs]
        claims = [world.claim(slots=2) for _ in range(15)]
        answers, claimed = await asyncio.gather(asyncio.gather(*cancels), asyncio.gather(*claims))
        started = {claim.job.id for batch in claimed for claim in batch}
        for job, answer in zip(jobs, answers, strict=True):
            assert isinstance(answer, CancelAnswer)
            if answer.disposition is CancelDisposition.CANCELLED:
                assert job.id not in started
            else:
                assert answer.disposition is CancelDisposition.REQUESTED
                assert job.id in started


class TestConcurrency(Suite):
    """The operation's own bound on attempts running at once."""

    async def test_the_bound_is_exact_and_a_slot_comes_back_at_every_end(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, concurrency_max=2)
        for _ in range(10):
            await world.accept(max_attempts=1)
        running = list(await world.claim(slots=10))
        assert len(running) == 2
        for outcome in (DONE, BROKEN, FLAKY, Released()):
            assert await world.claim(slots=10) == []
            await world.finish(running.pop(), outcome)
            running += await world.claim(slots=10)
            assert len(running) == 2

    async def test_a_lost_worker_gives_its_slot_back(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, concurrency_max=1)
        await world.start()
        await world.accept()
        assert await world.claim(slots=5) == []
        assert await let_leases_run_out(world) == 1
        assert len(await world.claim(slots=5)) == 1

    async def test_it_holds_over_all_stores(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, concurrency_max=1)
        await world.start()
        await world.accept()
        other = await world.another_store()
        answer = await other.claim_ready(ClaimRequest("worker-2", 5, {OPERATION: 5}, world.policies), world.now)
        assert list(answer.claims) == []


class TestDueTimes(Suite):
    """Not before, and not too late."""

    async def test_a_delayed_job_waits_for_its_time(self, world: World) -> None:
        job = await world.accept(delay_s=60)
        answer = await world.claims()
        assert list(answer.claims) == []
        assert answer.next_due_at == job.available_at
        world.clock.advance(59.999)
        assert await world.claim() == []
        world.clock.advance(0.001)
        answer = await world.claims()
        assert [claim.job.id for claim in answer.claims] == [job.id]
        assert answer.next_due_at is None

    async def test_next_due_is_the_earliest(self, world: World) -> None:
        for delay_s in (300, 20, 100):
            await world.accept(delay_s=delay_s)
        assert (await world.claims()).next_due_at == world.now + 20_000
        world.clock.advance(20)
        answer = await world.claims(slots=5)
        assert len(answer.claims) == 1
        assert answer.next_due_at == world.now + 80_000

    async def test_promotion_makes_due_jobs_ready_and_no_other(self, world: World) -> None:
        due = [await world.accept(delay_s=10) for _ in range(5)]
        later = await world.accept(delay_s=30)
        world.clock.advance(10)
        promotions = [await world.store.promote_due(world.now, 2) for _ in range(4)]
        assert [promotion.count for promotion in promotions] == [2, 2, 1, 0]
        assert promotions[-1] == Promotion(0, later.available_at)
        assert [await world.find(job.id) for job in due] == due
        assert [claim.job.id for claim in await world.claim(slots=9)] == [job.id for job in due]
        world.clock.advance(20)
        assert await world.store.promote_due(world.now, 2) == Promotion(1, None)

    async def test_a_delayed_job_does_not_jump_its_tenant_s_turn(self, world: World) -> None:
        await world.accept(tenant="b", delay_s=1)
        for _ in range(4):
            await world.accept(tenant="a")
        world.clock.advance(1)
        tenants = [claim.job.tenant for _ in range(3) for claim in await world.claim()]
        assert "b" in tenants[: 2 + world.factory.capabilities.fairness_slack]


class TestOverdue(Suite):
    """What is too late to start ends failed and never starts."""

    async def _must_never_start(self, world: World, job_id: str) -> None:
        assert await world.claim(slots=5) == []
        job = await world.find(job_id)
        assert job.status is Status.FAILED
        assert job.error is not None
        assert job.error.category is ErrorCategory.DEADLINE_EXCEEDED
        assert (job.attempt, job.started_at, job.finished_at) == (0, None, world.now)
        assert job.expires_at == world.now + round(POLICY.retention.failed_s * 1000)
        assert not await world.store.list_attempts(TENANT, job_id)

    async def test_after_its_deadline(self, world: World) -> None:
        job = await world.accept(deadline_at=world.now + 5_000)
        world.clock.advance(5)
        await self._must_never_start(world, job.id)

    async def test_after_the_queue_limit(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=30)
        job = await world.accept()
        world.clock.advance(31)
        await self._must_never_start(world, job.id)

    async def test_a_delayed_job_whose_deadline_passed_before_anyone_looked(self, world: World) -> None:
        job = await world.accept(delay_s=10, deadline_at=world.now + 20_000)
        world.clock.advance(25)
        await self._must_never_start(world, job.id)

    async def test_the_queue_limit_runs_from_the_time_the_job_could_start(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=30)
        job = await world.accept(delay_s=100)
        world.clock.advance(129)
        assert [claim.job.id for claim in await world.claim()] == [job.id]

    async def test_the_queue_limit_is_for_the_first_start_only(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=30)
        claim = await world.start()
        await world.finish(claim, FLAKY)
        world.clock.advance(100)
        await world.restart(claim.job.id)

    async def test_no_limit_is_no_limit(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=None)
        job = await world.accept()
        world.clock.advance(400 * 24 * 3600)
        assert [claim.job.id for claim in await world.claim()] == [job.id]

    async def test_overdue_jobs_cost_the_others_nothing(self, world: World) -> None:
        for _ in range(5):
            await world.accept(deadline_at=world.now + 5_000)
        job = await world.accept()
        world.clock.advance(6)
        assert [claim.job.id for _ in range(6) for claim in await world.claim()] == [job.id]
