"""Commits: a refused write takes no neighbour with it, and what was answered is there after a restart."""

import asyncio

import pytest

from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.states import Status
from coatcheck.store.errors import LeaseLost, StoreUnavailable
from coatcheck.store.records import (
    Accepted,
    Beat,
    BeatAnswer,
    Finished,
    Finishing,
    JobQuery,
    Prunable,
    Redriving,
    Replayed,
)
from coatcheck.testing.conformance.world import (
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
    stale,
)

HAND_OFFS = {
    "before-commit",
    "cancel-stored",
    "claim-before-commit",
    "dead-lettered",
    "key-reserved",
    "outbox-written",
    "purge-half",
    "reap-selected",
    "reap-updated",
    "redrive-half",
    "result-stored-before-commit",
    "retry-scheduled",
    "tombstone-written",
}
"""The fault points of the product that lie inside the store."""


async def _begin() -> None:
    """Awaited as a task: whatever was scheduled before has begun when it returns."""


class TestGroupCommit(Suite):
    """Writes that arrive together share a commit and nothing else."""

    async def test_a_poisoned_submission_fails_alone(self, world: World) -> None:
        taken = await world.accept()
        submissions = [world.submission() for _ in range(20)]
        submissions[10] = world.submission(job_id=taken.id, payload=b'"poison"', key=key_of(world))
        answers = await asyncio.gather(*map(world.store.accept_job, submissions), return_exceptions=True)
        assert isinstance(answers.pop(10), Exception)
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert await world.find(taken.id) == taken
        assert len((await world.store.list_jobs(JobQuery(TENANT, 50), world.now)).jobs) == 20
        assert isinstance(await world.store.accept_job(world.submission(key=key_of(world))), Accepted)

    async def test_a_whole_batch_of_poison_harms_nobody_after_it(self, world: World) -> None:
        taken = await world.accept()
        poison = [world.submission(job_id=taken.id) for _ in range(10)]
        answers = await asyncio.gather(*map(world.store.accept_job, poison), return_exceptions=True)
        assert all(isinstance(answer, Exception) for answer in answers)
        await world.restart(taken.id)

    async def test_a_lost_lease_fails_alone(self, world: World) -> None:
        claims = [await world.start() for _ in range(9)]
        policy = world.policies[OPERATION]
        finishings = [Finishing(claim.lease, DONE, policy, 0.5) for claim in claims]
        finishings.insert(4, Finishing(stale(claims[0].lease), FLAKY, policy, 0.5))
        writes = [world.store.finish_attempt(finishing, world.now) for finishing in finishings]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert isinstance(answers.pop(4), LeaseLost)
        assert all(isinstance(answer, Finished) for answer in answers)
        for claim in claims:
            assert (await world.find(claim.job.id)).status is Status.SUCCEEDED

    async def test_verbs_of_every_kind_share_a_commit(self, world: World) -> None:
        running = [await world.start() for _ in range(3)]
        waiting = [await world.accept() for _ in range(2)]
        store, now, policy = world.store, world.now, world.policies[OPERATION]
        beat = asyncio.ensure_future(store.extend_leases([Beat(running[0].lease, Progress(0.5, None))], now))
        effect = asyncio.ensure_future(store.record_effect(running[1].lease, "mail", b"sent", now))
        finished = asyncio.ensure_future(store.finish_attempt(Finishing(running[2].lease, DONE, policy, 0.5), now))
        claims = asyncio.ensure_future(world.claim())
        refused = asyncio.ensure_future(store.accept_job(world.submission(job_id=waiting[0].id)))
        cancelled = asyncio.ensure_future(cancel(world, waiting[1]))
        accepted = asyncio.ensure_future(world.accept())
        await asyncio.wait([beat, effect, finished, claims, refused, cancelled, accepted])
        assert list(beat.result()) == [BeatAnswer.GO_ON]
        assert effect.result() == b"sent"
        assert finished.result().job.status is Status.SUCCEEDED
        assert [claim.job.id for claim in claims.result()] == [waiting[0].id]
        assert refused.exception() is not None
        assert cancelled.result().status is Status.CANCELLED
        assert accepted.result().status is Status.QUEUED

    async def test_a_caller_that_gives_up_harms_nobody(self, world: World) -> None:
        tasks = [asyncio.ensure_future(world.store.accept_job(world.submission())) for _ in range(20)]
        await asyncio.create_task(_begin())
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(answer, Accepted) for answer in answers[1::2])
        assert isinstance(await world.accept(), JobRecord)


class TestFaults(Suite):
    """What the engine does when it cannot write, and where it can be interrupted."""

    async def test_a_commit_that_fails_wrote_nothing(self, world: World) -> None:
        submission = world.submission(key=key_of(world))
        passed = world.faults.count("before-commit")
        for nth in (passed + 1, passed + 2):
            world.faults.raise_at("before-commit", OSError("No space left on device"), nth)
        with pytest.raises(StoreUnavailable):
            await world.store.accept_job(submission)
        assert await world.store.find_job(TENANT, submission.job_id, world.now) is None
        while world.faults.count("before-commit") < passed + 2:
            with pytest.raises(StoreUnavailable):
                await world.store.accept_job(submission)
        assert isinstance(await world.store.accept_job(submission), Accepted)

    async def test_every_hand_off_has_its_fault_point(self, telling_world: World) -> None:
        world = telling_world
        claim = await world.start(key=key_of(world))
        await cancel(world, claim.job)
        await world.finish(claim, DONE)
        claim = await world.start()
        await world.finish(claim, FLAKY)
        await world.restart(claim.job.id)
        await let_leases_run_out(world)
        claim = await world.restart(claim.job.id)
        failed = await world.finish(claim, FLAKY)
        new = await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))
        assert isinstance(new, JobRecord)
        world.clock.advance(POLICY.retention.failed_s)
        assert await world.store.prune_expired(Prunable.JOBS, world.now, 10) == 2
        assert world.faults.names >= HAND_OFFS


class TestDurability(Suite):
    """Closed and opened again."""

    @pytest.mark.parametrize("status", sorted(Status))
    async def test_a_job_is_as_it_was(self, world: World, status: Status) -> None:
        job = await job_in(world, status, key=key_of(world))
        attempts = list(await world.store.list_attempts(TENANT, job.id))
        result = await world.store.read_result(TENANT, job.id, world.now)
        await world.reopen()
        assert await world.find(job.id) == job
        assert list(await world.store.list_attempts(TENANT, job.id)) == attempts
        assert await world.store.read_result(TENANT, job.id, world.now) == result
        assert await world.store.accept_job(world.submission(key=key_of(world))) == Replayed(job)

    async def test_a_worker_s_lease_outlives_the_store_s_process(self, world: World) -> None:
        claim = await world.start()
        await world.store.extend_leases([Beat(claim.lease, Progress(0.5, "Half"))], world.now)
        await world.store.record_effect(claim.lease, "mail", b"sent", world.now)
        await world.reopen()
        assert (await world.find(claim.job.id)).progress == Progress(0.5, "Half")
        assert await world.store.find_effect(claim.lease, "mail") == b"sent"
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED

    async def test_a_lease_nobody_beats_is_rescued_after_a_restart(self, world: World) -> None:
        claim = await world.start()
        await world.reopen()
        assert await let_leases_run_out(world) == 1
        await world.restart(claim.job.id)

    async def test_waiting_work_keeps_its_order_and_time(self, world: World) -> None:
        ready = [await world.accept() for _ in range(3)]
        delayed = await world.accept(delay_s=60)
        await world.reopen()
        answer = await world.claims(slots=9)
        assert [claim.job.id for claim in answer.claims] == [job.id for job in ready]
        assert answer.next_due_at == delayed.available_at

    async def test_tombstones_stay(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s)
        await world.store.prune_expired(Prunable.JOBS, world.now, 10)
        before = await world.store.find_job(TENANT, job.id, world.now)
        await world.reopen()
        assert await world.store.find_job(TENANT, job.id, world.now) == before is not None

    async def test_a_closed_store_says_so_at_once(self, world: World) -> None:
        job = await world.accept()
        store, late = world.store, world.submission()
        await world.close()
        for verb in (lambda: store.accept_job(late), lambda: store.find_job(TENANT, job.id, world.now)):
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(verb(), 2)

    async def test_closing_ends_what_was_begun(self, world: World) -> None:
        tasks = [asyncio.ensure_future(world.store.accept_job(world.submission())) for _ in range(20)]
        await asyncio.create_task(_begin())
        await world.close()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        accepted = [answer.job for answer in answers if isinstance(answer, Accepted)]
        await world.reopen()
        for job in accepted:
            assert await world.find(job.id) == job
        listed = (await world.store.list_jobs(JobQuery(TENANT, 50), world.now)).jobs
        assert len(listed) == len(accepted)
