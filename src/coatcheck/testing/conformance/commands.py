"""What a client or an operator does to a job: cancel, erase, redrive. Repeating any of them is safe."""

import asyncio

import pytest
from msgspec import structs

from coatcheck.core.job import JobRecord
from coatcheck.core.limits import CANCEL_REASON_CHARS_MAX
from coatcheck.core.outcome import Cancelled
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.records import (
    CancelAnswer,
    CancelDisposition,
    EraseDisposition,
    JobQuery,
    Prunable,
    RedriveRefusal,
    Redriving,
    Replayed,
    Tombstone,
)
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    OPERATION,
    POLICY,
    TENANT,
    UNKNOWN_ID,
    Suite,
    World,
    job_in,
    key_of,
)

_FINAL = [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED]
_OPEN = [Status.QUEUED, Status.RUNNING]


async def _cancel(world: World, job_id: str, reason: str | None = None, tenant: str = TENANT) -> CancelAnswer:
    answer = await world.store.cancel_job(tenant, job_id, reason, Policies(world.policies), world.now)
    assert isinstance(answer, CancelAnswer), answer
    return answer


class TestCancel(Suite):
    """The end of a job on its client's wish."""

    @pytest.mark.parametrize("delay_s", [0, 60])
    async def test_a_waiting_job_ends_at_once(self, world: World, delay_s: int) -> None:
        job = await world.accept(delay_s=delay_s)
        world.clock.advance(1)
        answer = await _cancel(world, job.id, "Ordered twice ☂")
        assert answer.disposition is CancelDisposition.CANCELLED
        assert answer.job == structs.replace(
            job,
            status=Status.CANCELLED,
            version=job.version + 1,
            updated_at=world.now,
            finished_at=world.now,
            expires_at=world.now + round(POLICY.retention.cancelled_s * 1000),
            cancel_requested=True,
            cancel_reason="Ordered twice ☂",
        )
        assert await world.find(job.id) == answer.job
        world.clock.advance(100)
        claims = await world.claims(slots=5)
        assert (list(claims.claims), claims.next_due_at) == ([], None)
        assert not await world.store.list_attempts(TENANT, job.id)

    async def test_a_running_job_is_asked(self, world: World) -> None:
        claim = await world.start()
        world.clock.advance(1)
        reason = "x" * CANCEL_REASON_CHARS_MAX
        answer = await _cancel(world, claim.job.id, reason)
        assert answer.disposition is CancelDisposition.REQUESTED
        assert answer.job == structs.replace(
            claim.job,
            version=claim.job.version + 1,
            updated_at=world.now,
            cancel_requested=True,
            cancel_reason=reason,
        )
        assert await world.find(claim.job.id) == answer.job
        assert (await world.finish(claim, Cancelled())).status is Status.CANCELLED

    async def test_asking_twice_changes_nothing(self, world: World) -> None:
        claim = await world.start()
        first = await _cancel(world, claim.job.id, "The first reason")
        world.clock.advance(1)
        for reason in ("The first reason", "Another reason", None):
            assert await _cancel(world, claim.job.id, reason) == first
        assert await world.find(claim.job.id) == first.job

    @pytest.mark.parametrize("status", _FINAL)
    async def test_a_finished_job_stays_as_it_is(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        world.clock.advance(1)
        was_cancelled = status is Status.CANCELLED
        expected = CancelDisposition.ALREADY_CANCELLED if was_cancelled else CancelDisposition.ALREADY_FINISHED
        for _ in range(2):
            assert await _cancel(world, job.id, "Late") == CancelAnswer(expected, job)
        assert await world.find(job.id) == job

    async def test_what_is_not_there_is_not_cancelled(self, world: World) -> None:
        policies = Policies(world.policies)
        job = await world.accept()
        assert await world.store.cancel_job("other", job.id, None, policies, world.now) is None
        assert await world.store.cancel_job(TENANT, UNKNOWN_ID, None, policies, world.now) is None
        assert await world.find(job.id) == job

    async def test_an_expired_job_is_a_tombstone(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s)
        expected = Tombstone(job.id, OPERATION, world.now)
        policies = Policies(world.policies)
        assert await world.store.cancel_job(TENANT, job.id, None, policies, world.now) == expected
        await world.store.prune_expired(Prunable.JOBS, world.now, 10)
        assert await world.store.cancel_job(TENANT, job.id, None, policies, world.now) == expected

    async def test_a_waiting_neighbour_is_not_touched(self, world: World) -> None:
        jobs = [await world.accept() for _ in range(3)]
        await _cancel(world, jobs[1].id)
        assert [claim.job.id for claim in await world.claim(slots=5)] == [jobs[0].id, jobs[2].id]


class TestErase(Suite):
    """Gone at the client's wish."""

    @pytest.mark.parametrize("status", _FINAL)
    async def test_a_finished_job_leaves_only_its_tombstone(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        world.clock.advance(1)
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.ERASED
        assert await world.store.find_job(TENANT, job.id, world.now) == Tombstone(job.id, OPERATION, world.now)
        assert await world.store.read_result(TENANT, job.id, world.now) is None
        assert not await world.store.list_attempts(TENANT, job.id)
        assert not (await world.store.list_jobs(JobQuery(TENANT, 10), world.now)).jobs
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.ALREADY_GONE

    async def test_nothing_of_it_is_left_in_the_tables_but_the_tombstone(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        await world.store.erase_job(TENANT, job.id, world.now)
        assert sum((await world.factory.count_rows()).values()) == 1

    @pytest.mark.parametrize("status", _OPEN)
    async def test_an_open_job_is_not_erased(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.NOT_FINISHED
        assert await world.find(job.id) == job

    async def test_what_is_not_there_is_not_erased(self, world: World) -> None:
        job = await job_in(world, Status.FAILED)
        assert await world.store.erase_job("other", job.id, world.now) is None
        assert await world.store.erase_job(TENANT, UNKNOWN_ID, world.now) is None
        assert await world.find(job.id) == job

    async def test_an_expired_job_is_already_gone(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        world.clock.advance(POLICY.retention.succeeded_s)
        tombstone = await world.store.find_job(TENANT, job.id, world.now)
        world.clock.advance(1)
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.ALREADY_GONE
        assert await world.store.find_job(TENANT, job.id, world.now) == tombstone


class TestRedrive(Suite):
    """A failed job, run again as a new one."""

    async def _redrive(self, world: World, job: JobRecord, tenant: str = TENANT) -> JobRecord | RedriveRefusal:
        return await world.store.redrive_job(Redriving(tenant, job.id, world.submission().job_id, world.now))

    async def _redriven(self, world: World, job: JobRecord) -> JobRecord:
        new = await self._redrive(world, job)
        assert isinstance(new, JobRecord)
        return new

    async def test_a_new_job_of_the_same_chain(self, world: World) -> None:
        payload = b'{"branch":"south"}'
        claim = await world.start(payload=payload, priority=3, deadline_at=world.now + 90_000, key=key_of(world))
        failed = await world.finish(claim, BROKEN)
        world.clock.advance(100)
        new = await self._redriven(world, failed)
        assert (new.status, new.attempt, new.counted_attempts, new.deadline_at) == (Status.QUEUED, 0, 0, None)
        assert (new.priority, new.max_attempts, new.operation) == (3, failed.max_attempts, OPERATION)
        assert (new.redrive_of, new.chain_id, new.created_at) == (failed.id, failed.id, world.now)
        assert (new.error, new.finished_at, new.expires_at, new.redriven_as) == (None, None, None, None)
        assert await world.find(new.id) == new
        old = await world.find(failed.id)
        assert old == structs.replace(failed, redriven_as=new.id, version=failed.version + 1, updated_at=world.now)
        assert (await world.restart(new.id)).payload == payload

    async def test_a_second_call_answers_with_the_same_job(self, world: World) -> None:
        failed = await job_in(world, Status.FAILED)
        new = await self._redriven(world, failed)
        old = await world.find(failed.id)
        assert await self._redrive(world, failed) == new
        done = await world.finish(await world.restart(new.id), DONE)
        assert await self._redrive(world, failed) == done
        assert await world.find(failed.id) == old
        assert await world.claim() == []

    async def test_many_at_once_make_one_job(self, world: World) -> None:
        failed = await job_in(world, Status.FAILED)
        answers = await asyncio.gather(*(self._redrive(world, failed) for _ in range(20)))
        assert len({answer.id for answer in answers if isinstance(answer, JobRecord)}) == 1
        assert len(await world.claim(slots=20)) == 1

    async def test_a_redriven_job_that_fails_is_redriven_in_its_turn(self, world: World) -> None:
        first = await job_in(world, Status.FAILED)
        second = await self._redriven(world, first)
        failed = await world.finish(await world.restart(second.id), BROKEN)
        third = await self._redriven(world, failed)
        assert (third.redrive_of, third.chain_id) == (second.id, first.id)

    async def test_the_key_still_stands_for_the_first_job(self, world: World) -> None:
        failed = await job_in(world, Status.FAILED, key=key_of(world))
        await self._redriven(world, failed)
        replay = await world.store.accept_job(world.submission(key=key_of(world)))
        assert replay == Replayed(await world.find(failed.id))

    @pytest.mark.parametrize("status", sorted(set(Status) - {Status.FAILED}))
    async def test_only_a_failed_job_is_redriven(self, world: World, status: Status) -> None:
        job = await job_in(world, status)
        assert await self._redrive(world, job) is RedriveRefusal.NOT_FAILED
        assert await world.find(job.id) == job

    async def test_what_is_not_there_is_not_redriven(self, world: World) -> None:
        failed = await job_in(world, Status.FAILED)
        assert await self._redrive(world, failed, tenant="other") is RedriveRefusal.NOT_FOUND
        assert await self._redrive(world, structs.replace(failed, id=UNKNOWN_ID)) is RedriveRefusal.NOT_FOUND
        assert await world.find(failed.id) == failed
        world.clock.advance(POLICY.retention.failed_s)
        assert await self._redrive(world, failed) is RedriveRefusal.NOT_FOUND
        await world.store.erase_job(TENANT, failed.id, world.now)
        assert await self._redrive(world, failed) is RedriveRefusal.NOT_FOUND
