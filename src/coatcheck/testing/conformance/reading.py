"""Reading: expiry told at the read, pages that neither repeat nor miss, and nothing of another tenant anywhere."""

from dataclasses import replace

import pytest
from msgspec import structs

from coatcheck.core.job import JobRecord
from coatcheck.core.limits import PAGE_SIZE_MAX
from coatcheck.core.policy import Policies, Retention
from coatcheck.core.states import Status
from coatcheck.store.records import JobPage, JobQuery, Prunable, TenantQueue, Tombstone
from coatcheck.testing.conformance.world import (
    DONE,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    UNKNOWN_ID,
    Suite,
    World,
    cancel,
    job_in,
)
from coatcheck.testing.waiting import wait_until_async

_LIFETIMES = {
    Status.SUCCEEDED: POLICY.retention.succeeded_s,
    Status.FAILED: POLICY.retention.failed_s,
    Status.CANCELLED: POLICY.retention.cancelled_s,
}


async def _page(world: World, query: JobQuery) -> JobPage:
    return await world.store.list_jobs(query, world.now)


async def _walk(world: World, query: JobQuery) -> list[JobRecord]:
    """Every page after the other."""
    jobs: list[JobRecord] = []
    while True:
        page = await _page(world, query)
        assert len(page.jobs) <= query.limit
        jobs += page.jobs
        if not page.has_more:
            return jobs
        query = replace(query, before=page.jobs[-1].id)


async def _settled(world: World, query: JobQuery, ids: list[str]) -> bool:
    return [job.id for job in await _walk(world, query)] == ids


async def _must_list(world: World, query: JobQuery, ids: list[str]) -> None:
    """An engine whose lists lag may take its time, but not another answer."""
    if world.factory.capabilities.has_fresh_lists:
        assert [job.id for job in await _walk(world, query)] == ids
        return

    async def is_settled() -> bool:
        return await _settled(world, query, ids)

    await wait_until_async(is_settled, f"a list of {len(ids)} jobs for {query}")


class TestExpiry(Suite):
    """A job is gone when its time has come, swept or not."""

    @pytest.mark.parametrize("status", sorted(_LIFETIMES))
    async def test_a_finished_job_becomes_a_tombstone_at_its_time(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        assert job.expires_at == world.now + round(_LIFETIMES[status] * 1000)
        world.clock.advance(_LIFETIMES[status] - 0.001)
        last_seen = await world.find(job.id)
        assert structs.replace(last_seen, result=None) == structs.replace(job, result=None)
        world.clock.advance(0.001)
        for _ in range(2):
            found = await world.store.find_job(TENANT, job.id, world.now)
            assert found == Tombstone(job.id, OPERATION, job.expires_at)
            assert not (await _page(world, JobQuery(TENANT, 10))).jobs
            world.clock.advance(1)

    async def test_after_its_tombstone_a_job_was_never_there_swept_or_not(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s + POLICY.retention.tombstone_s)
        policies = Policies(world.policies)
        for what in (Prunable.RESULTS, Prunable.JOBS, Prunable.TOMBSTONES):
            assert await world.store.find_job(TENANT, job.id, world.now) is None
            assert await world.store.cancel_job(TENANT, job.id, None, policies, world.now) is None
            assert await world.store.erase_job(TENANT, job.id, world.now) is None
            await world.store.prune_expired(what, world.now, 10)

    async def test_an_open_job_never_expires(self, world: World) -> None:
        claim = await world.start()
        waiting = await world.accept(delay_s=1000 * 24 * 3600)
        world.clock.advance(900 * 24 * 3600)
        assert await world.find(claim.job.id) == claim.job
        assert await world.find(waiting.id) == waiting

    async def test_a_result_may_go_before_its_job(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.result_s - 0.001)
        assert await world.store.read_result(TENANT, job.id, world.now) is not None
        world.clock.advance(0.001)
        assert await world.store.read_result(TENANT, job.id, world.now) is None
        assert (await world.find(job.id)).result_expires_at == world.now

    async def test_a_result_never_outlives_its_job(self, world: World) -> None:
        retention = Retention(succeeded_s=100, result_s=900)
        world.policies[OPERATION] = replace(POLICY, retention=retention)
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(100)
        assert job.result_expires_at == job.expires_at == world.now
        assert await world.store.read_result(TENANT, job.id, world.now) is None

    @pytest.mark.parametrize("status", sorted(set(Status) - {Status.SUCCEEDED}))
    async def test_only_a_success_has_a_result(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        assert await world.store.read_result(TENANT, job.id, world.now) is None


class TestIsolation(Suite):
    """Another tenant's job is not found, whatever is asked of it."""

    @pytest.mark.parametrize("status", sorted(Status))
    async def test_nothing_is_read_across_tenants(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        store, now = world.store, world.now
        for tenant in ("other", "", "acme ", "ACME", "%"):
            assert await store.find_job(tenant, job.id, now) is None
            assert await store.read_result(tenant, job.id, now) is None
            assert not await store.list_attempts(tenant, job.id)
            assert not (await store.list_jobs(JobQuery(tenant, 10), now)).jobs
        world.clock.advance(POLICY.retention.cancelled_s + 1)
        for _ in range(2):
            assert await store.find_job("other", job.id, world.now) is None
            assert await store.erase_job("other", job.id, world.now) is None
            await store.prune_expired(Prunable.JOBS, world.now, 10)

    @pytest.mark.parametrize("job_id", [UNKNOWN_ID, "", "x", "'; DROP TABLE job; --", "job_☂"])
    async def test_what_was_never_accepted_is_not_found(self, world: World, job_id: str) -> None:
        assert await world.store.find_job(TENANT, job_id, world.now) is None
        assert await world.store.read_result(TENANT, job_id, world.now) is None
        assert not await world.store.list_attempts(TENANT, job_id)


class TestLists(Suite):
    """The tenant's jobs, newest first."""

    async def test_no_jobs_is_an_empty_last_page(self, world: World) -> None:
        page = await _page(world, JobQuery(TENANT, 10))
        assert (list(page.jobs), page.has_more) == ([], False)

    @pytest.mark.parametrize("count", [1, 4, 5, 6, 10, 11])
    async def test_pages_cover_every_job_once(self, world: World, count: int) -> None:
        ids = [(await world.accept()).id for _ in range(count)]
        await _must_list(world, JobQuery(TENANT, 5), ids[::-1])
        first = await _page(world, JobQuery(TENANT, 5))
        assert first.has_more is (count > 5)
        full = await _page(world, JobQuery(TENANT, count))
        assert full.has_more is False

    async def test_jobs_that_arrive_between_pages_move_nothing(self, world: World) -> None:
        ids = [(await world.accept()).id for _ in range(7)]
        await _must_list(world, JobQuery(TENANT, 10), ids[::-1])
        page = await _page(world, JobQuery(TENANT, 3))
        seen = [job.id for job in page.jobs]
        while page.has_more:
            for _ in range(2):
                await world.accept()
            page = await _page(world, JobQuery(TENANT, 3, before=seen[-1]))
            seen += [job.id for job in page.jobs]
        assert seen == ids[::-1]

    async def test_a_page_may_begin_at_a_job_that_is_gone(self, world: World) -> None:
        ids = [(await job_in(world, Status.SUCCEEDED)).id for _ in range(3)]
        await world.store.erase_job(TENANT, ids[1], world.now)
        await _must_list(world, JobQuery(TENANT, 5, before=ids[1]), [ids[0]])
        await _must_list(world, JobQuery(TENANT, 5), [ids[2], ids[0]])

    async def test_filters_agree_with_what_each_job_says(self, world: World) -> None:
        jobs = [await job_in(world, status) for status in Status if status is not Status.QUEUED for _ in range(2)]
        jobs += [await world.accept(), await world.accept(delay_s=60), await world.accept(operation=OTHER_OPERATION)]
        newest_first = sorted([await world.find(job.id) for job in jobs], key=lambda job: job.id, reverse=True)
        for status in (None, *Status):
            for operation in (None, OPERATION, OTHER_OPERATION, "unheard-of"):
                query = JobQuery(TENANT, 2, operation, status)
                expected = [
                    job for job in newest_first if status in (None, job.status) and operation in (None, job.operation)
                ]
                await _must_list(world, query, [job.id for job in expected])
                assert await _walk(world, query) == expected

    async def test_a_filter_follows_a_job_as_it_moves(self, world: World) -> None:
        claim = await world.start()
        await _must_list(world, JobQuery(TENANT, 5, status=Status.RUNNING), [claim.job.id])
        await world.finish(claim, DONE)
        await _must_list(world, JobQuery(TENANT, 5, status=Status.RUNNING), [])
        await _must_list(world, JobQuery(TENANT, 5, status=Status.SUCCEEDED), [claim.job.id])

    async def test_tenants_see_their_own(self, world: World) -> None:
        ids: dict[str, list[str]] = {"a": [], "b": []}
        for _ in range(3):
            for tenant, own in ids.items():
                own.append((await world.accept(tenant=tenant)).id)
        for tenant, own in ids.items():
            await _must_list(world, JobQuery(tenant, 2), own[::-1])
        await _must_list(world, JobQuery("a", 5, before=ids["b"][1]), [ids["a"][1], ids["a"][0]])

    async def test_the_largest_page(self, world: World) -> None:
        for _ in range(PAGE_SIZE_MAX + 1):
            await world.accept()
        page = await _page(world, JobQuery(TENANT, PAGE_SIZE_MAX))
        assert (len(page.jobs), page.has_more) == (PAGE_SIZE_MAX, True)

    async def test_expired_jobs_are_left_out_of_every_page(self, world: World) -> None:
        old = [await world.accept() for _ in range(3)]
        for job in old:
            await cancel(world, job)
        world.clock.advance(POLICY.retention.cancelled_s)
        new = await world.accept()
        await _must_list(world, JobQuery(TENANT, 1), [new.id])
        await _must_list(world, JobQuery(TENANT, 2, status=Status.CANCELLED), [])


class TestMeasures(Suite):
    """What each queue is doing."""

    async def test_waiting_scheduled_and_running_are_counted_apart(self, world: World) -> None:
        await world.start()
        for tenant in ("a", "b"):
            await world.accept(tenant=tenant, delay_s=60)
        oldest = world.now
        await world.accept(tenant="a")
        world.clock.advance(5)
        await world.accept(tenant="b")
        await world.accept(operation=OTHER_OPERATION, delay_s=60)
        measures = {measure.operation: measure for measure in await world.store.measure_queues(world.now)}
        assert set(measures) == {OPERATION, OTHER_OPERATION}
        reports, exports = measures[OPERATION], measures[OTHER_OPERATION]
        assert (reports.ready, reports.scheduled, reports.running) == (2, 2, 1)
        assert reports.oldest_ready_at == oldest
        assert (exports.ready, exports.scheduled, exports.running) == (0, 1, 0)
        assert exports.oldest_ready_at is None

    async def test_each_tenant_s_line_has_its_length_and_its_ends(self, world: World) -> None:
        begins = world.now
        await world.accept(tenant="a")
        world.clock.advance(5)
        await world.accept(tenant="b")
        await world.accept(tenant="a", priority=8)
        await world.accept(tenant="c", delay_s=60)
        await world.accept(tenant="a", operation=OTHER_OPERATION)
        measures = {measure.operation: measure for measure in await world.store.measure_queues(world.now)}
        lines = sorted(measures[OPERATION].tenants, key=lambda line: line.tenant)
        assert lines == [TenantQueue("a", 2, begins, world.now, 8), TenantQueue("b", 1, world.now, world.now, 5)]
        assert [line.tenant for line in measures[OTHER_OPERATION].tenants] == ["a"]

    async def test_a_place_in_the_line_is_counted_among_the_tenant_s_own(self, world: World) -> None:
        jobs = [await world.accept(tenant="a", priority=priority) for priority in (5, 5, 9, 0)]
        await world.accept(tenant="b", priority=0)
        await world.accept(tenant="a", operation=OTHER_OPERATION, priority=0)
        assert [await world.store.count_ahead(job, 10) for job in jobs] == [1, 2, 3, 0]
        assert await world.store.count_ahead(jobs[2], 2) == 2

    async def test_run_time_is_what_was_seen(self, world: World) -> None:
        claim = await world.start()
        (before,) = await world.store.measure_queues(world.now)
        assert (before.recent_run_s, before.runs) == (None, 0)
        world.clock.advance(4)
        await world.finish(claim, DONE)
        claim = await world.start()
        world.clock.advance(10)
        await world.finish(claim, DONE)
        await world.accept()
        (after,) = await world.store.measure_queues(world.now)
        assert after.runs == 2
        assert after.recent_run_s == pytest.approx(7.0)
        assert after.run_spread_s == pytest.approx(3.0)

    async def test_an_empty_store_measures_nothing(self, world: World) -> None:
        assert not await world.store.measure_queues(world.now)

    async def test_a_healthy_store_says_so(self, world: World) -> None:
        await world.store.check_health()
