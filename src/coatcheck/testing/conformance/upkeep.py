"""Upkeep: bounded sweeps that end what is overdue, forget what has had its time, and leave nothing behind."""

import asyncio
from dataclasses import replace

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.outcome import NEVER_STARTED, Released
from coatcheck.core.policy import HOUR_S, Policies
from coatcheck.core.states import Status
from coatcheck.store.records import Prunable, Redriving, Tombstone
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    POLICY,
    TENANT,
    Suite,
    World,
    cancel,
    job_in,
    key_of,
    let_leases_run_out,
)


async def _expire(world: World, limit: int = 10) -> int:
    return await world.store.expire_overdue(Policies(world.policies), world.now, limit)


async def _prune(world: World, what: Prunable, limit: int = 10) -> int:
    return await world.store.prune_expired(what, world.now, limit)


class TestOverdueSweep(Suite):
    """Ending what nobody started in time."""

    async def test_it_ends_at_most_its_limit(self, world: World) -> None:
        jobs = [await world.accept(deadline_at=world.now + 5_000, delay_s=n % 2) for n in range(5)]
        kept = [await world.accept(), await world.accept(deadline_at=world.now + 60_000)]
        world.clock.advance(5)
        assert [await _expire(world, limit=2) for _ in range(4)] == [2, 2, 1, 0]
        for job in jobs:
            ended = await world.find(job.id)
            assert (ended.status, ended.finished_at, ended.attempt) == (Status.FAILED, world.now, 0)
            assert ended.error is not None
            assert ended.error.category is ErrorCategory.DEADLINE_EXCEEDED
            assert ended.expires_at == world.now + round(POLICY.retention.failed_s * 1000)
        assert [claim.job.id for claim in await world.claim(slots=9)] == [job.id for job in kept]

    async def test_it_knows_the_queue_limit_of_each_operation(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=30)
        job = await world.accept()
        delayed = await world.accept(delay_s=20)
        world.clock.advance(31)
        assert await _expire(world) == 1
        ended = await world.find(job.id)
        assert (ended.status, ended.error) == (Status.FAILED, NEVER_STARTED)
        assert (await world.find(delayed.id)).status is Status.QUEUED
        world.clock.advance(20)
        await world.store.promote_due(world.now, 10)
        assert await _expire(world) == 1

    async def test_a_job_that_started_has_no_queue_limit(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, queue_limit_s=30)
        claim = await world.start()
        await world.finish(claim, FLAKY)
        world.clock.advance(100)
        assert await _expire(world) == 0
        await world.finish(await world.restart(claim.job.id), Released())
        world.clock.advance(100)
        assert await _expire(world) == 0
        await world.restart(claim.job.id)

    async def test_a_deadline_ends_the_wait_for_another_try(self, world: World) -> None:
        claim = await world.start(deadline_at=world.now + 20_000)
        await world.finish(claim, FLAKY)
        world.clock.advance(21)
        assert await _expire(world) == 1
        job = await world.find(claim.job.id)
        assert (job.status, job.attempt) == (Status.FAILED, 1)
        assert job.error is not None
        assert job.error.category is ErrorCategory.DEADLINE_EXCEEDED

    async def test_a_running_job_is_left_to_its_worker(self, world: World) -> None:
        claim = await world.start(deadline_at=world.now + 1_000)
        world.clock.advance(2 * HOUR_S)
        assert await _expire(world) == 0
        assert await world.find(claim.job.id) == claim.job

    async def test_running_jobs_past_their_deadline_do_not_fill_the_sweep(self, world: World) -> None:
        for _ in range(5):
            await world.start(deadline_at=world.now + 1_000)
        await world.accept(deadline_at=world.now + 2_000)
        world.clock.advance(3)
        assert await _expire(world, limit=2) == 1

    async def test_many_sweepers_end_each_job_once(self, world: World) -> None:
        for _ in range(20):
            await world.accept(deadline_at=world.now + 1_000)
        world.clock.advance(2)
        stores = [world.store, await world.another_store()]
        policies = Policies(world.policies)
        counts = await asyncio.gather(*(stores[n % 2].expire_overdue(policies, world.now, 7) for n in range(8)))
        assert sum(counts) == 20


class TestRetention(Suite):
    """Forgetting, each kind of trace at its own time."""

    async def test_results_go_first_and_the_job_stays(self, world: World) -> None:
        jobs = [await job_in(world, Status.SUCCEEDED) for _ in range(3)]
        world.clock.advance(POLICY.retention.result_s - 0.001)
        assert await _prune(world, Prunable.RESULTS) == 0
        world.clock.advance(0.001)
        assert [await _prune(world, Prunable.RESULTS, limit=2) for _ in range(3)] == [2, 1, 0]
        for job in jobs:
            assert (await world.find(job.id)).status is Status.SUCCEEDED
            assert await world.store.read_result(TENANT, job.id, world.now) is None

    async def test_jobs_go_at_the_time_of_their_end_and_leave_a_tombstone(self, world: World) -> None:
        retention = POLICY.retention
        jobs = [await job_in(world, status) for status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)]
        waiting = await world.accept(delay_s=10**6)
        for job, wait_s in zip(jobs, (retention.succeeded_s, retention.failed_s, retention.cancelled_s), strict=True):
            assert job.expires_at is not None
            world.clock.advance((job.expires_at - world.now) / 1000 - 0.001)
            assert await _prune(world, Prunable.JOBS) == 0
            world.clock.advance(0.001)
            assert await _prune(world, Prunable.JOBS) == 1
            assert job.expires_at == job.created_at + round(wait_s * 1000)
            assert await world.store.find_job(TENANT, job.id, world.now) == Tombstone(job.id, OPERATION, world.now)
            assert not await world.store.list_attempts(TENANT, job.id)
        assert await world.find(waiting.id) == waiting

    async def test_jobs_go_in_bounded_batches(self, world: World) -> None:
        for _ in range(5):
            await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s)
        assert [await _prune(world, Prunable.JOBS, limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_tombstones_go_last(self, world: World) -> None:
        jobs = [await job_in(world, Status.SUCCEEDED) for _ in range(3)]
        world.clock.advance(POLICY.retention.succeeded_s)
        assert await _prune(world, Prunable.JOBS) == 3
        world.clock.advance(POLICY.retention.tombstone_s - 0.001)
        assert await _prune(world, Prunable.TOMBSTONES) == 0
        world.clock.advance(0.001)
        assert [await _prune(world, Prunable.TOMBSTONES, limit=2) for _ in range(3)] == [2, 1, 0]
        for job in jobs:
            assert await world.store.find_job(TENANT, job.id, world.now) is None

    async def test_a_job_pruned_late_has_the_same_tombstone(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s + 100)
        assert await _prune(world, Prunable.JOBS) == 1
        tombstone = await world.store.find_job(TENANT, job.id, world.now)
        assert tombstone == Tombstone(job.id, OPERATION, job.expires_at or 0)
        world.clock.advance(POLICY.retention.tombstone_s - 100)
        assert await _prune(world, Prunable.TOMBSTONES) == 1

    async def test_keys_go_at_the_end_of_their_window(self, world: World) -> None:
        for n in range(3):
            await world.accept(key=key_of(world, f"key-{n}", window_s=60))
        await world.accept(key=key_of(world, "later", window_s=61))
        world.clock.advance(59.999)
        assert await _prune(world, Prunable.KEYS) == 0
        world.clock.advance(0.001)
        assert [await _prune(world, Prunable.KEYS, limit=2) for _ in range(3)] == [2, 1, 0]

    async def test_a_tombstone_waits_for_the_key(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED, key=key_of(world, window_s=10_000))
        world.clock.advance(9_999)
        await _prune(world, Prunable.JOBS)
        assert await _prune(world, Prunable.TOMBSTONES) == 0
        assert isinstance(await world.store.find_job(TENANT, job.id, world.now), Tombstone)
        world.clock.advance(1)
        assert await _prune(world, Prunable.KEYS) == 1
        assert await _prune(world, Prunable.TOMBSTONES) == 1

    async def test_many_sweepers_prune_each_job_once(self, world: World) -> None:
        for _ in range(20):
            await cancel(world, await world.accept())
        world.clock.advance(POLICY.retention.cancelled_s)
        stores = [world.store, await world.another_store()]
        counts = await asyncio.gather(*(stores[n % 2].prune_expired(Prunable.JOBS, world.now, 7) for n in range(8)))
        assert sum(counts) == 20

    async def test_redriven_jobs_outlive_the_one_they_came_from(self, world: World) -> None:
        first = await world.finish(await world.start(), BROKEN)
        world.clock.advance(POLICY.retention.failed_s - 1)
        await world.store.redrive_job(Redriving(TENANT, first.id, world.submission().job_id, world.now))
        (claim,) = await world.claim()
        world.clock.advance(1)
        assert await _prune(world, Prunable.JOBS) == 1
        assert (await world.finish(claim, DONE)).redrive_of == first.id


async def _live_and_die(world: World, tenant: str) -> None:
    """One of every kind of life, from its acceptance to after its tombstone."""
    claims = []
    for n in range(4):
        await world.accept(tenant=tenant, key=key_of(world, f"key-{n}"), deadline_at=world.now + 60_000)
        claims += await world.claim()
    done, broken, lost, flaky = claims
    for claim in claims:
        await world.store.record_effect(claim.lease, "mail", b"sent", world.now)
    await world.finish(done, DONE)
    failed = await world.finish(broken, BROKEN)
    await world.store.redrive_job(Redriving(tenant, failed.id, world.submission().job_id, world.now))
    await cancel(world, lost.job)
    await cancel(world, await world.accept(tenant=tenant, delay_s=30, deadline_at=world.now + 60_000))
    await world.finish(flaky, FLAKY)
    await let_leases_run_out(world)
    for claim in await world.claim(slots=10):
        await world.finish(claim, DONE)
    await world.accept(tenant=tenant, deadline_at=world.now + 1000)
    erased = await world.accept(tenant=tenant)
    await cancel(world, erased)
    await world.store.erase_job(tenant, erased.id, world.now)
    world.clock.advance(2)
    assert await _expire(world) == 1
    for _ in range(2):
        world.clock.advance(100 * 24 * HOUR_S)
        for what in Prunable:
            while await _prune(world, what):
                pass


class TestBaseline(Suite):
    """Nothing grows for ever."""

    async def test_every_row_is_gone_at_the_end(self, world: World) -> None:
        await _live_and_die(world, "tenant-0")
        baseline = dict(await world.factory.count_rows())
        for number in range(1, 4):
            await _live_and_die(world, f"tenant-{number}")
        assert dict(await world.factory.count_rows()) == baseline

    async def test_and_the_outbox_is_empty_once_it_was_told(self, telling_world: World) -> None:
        world = telling_world
        baseline: dict[str, int] = {}
        for number in range(3):
            await _live_and_die(world, f"tenant-{number}")
            entries = await world.store.read_outbox(500)
            await world.store.remove_relayed([entry.seq for entry in entries])
            baseline = baseline or dict(await world.factory.count_rows())
        assert dict(await world.factory.count_rows()) == baseline
