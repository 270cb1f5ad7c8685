"""Leases: one worker at a time may write, and whoever lost the right can write nothing any more."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.faults import no_fault
from coatcheck.core.job import AttemptRecord, Progress
from coatcheck.core.outcome import LOST
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Beat, BeatAnswer, Claim
from coatcheck.testing.conformance.world import (
    DONE,
    FLAKY,
    LEASE_S,
    TENANT,
    UNKNOWN_ID,
    Suite,
    World,
    cancel,
    let_leases_run_out,
    rescue,
    stale,
    watch,
)


async def _beat(world: World, claim: Claim, progress: Progress | None = None) -> BeatAnswer:
    (answer,) = await world.store.extend_leases([Beat(claim.lease, progress)], world.now)
    return answer


async def _finish(world: World, claim: Claim) -> None:
    await world.finish(claim, DONE)


async def _fail(world: World, claim: Claim) -> None:
    await world.finish(claim, FLAKY)


async def _record_effect(world: World, claim: Claim) -> None:
    await world.store.record_effect(claim.lease, "mail", b"sent", world.now)


async def _find_effect(world: World, claim: Claim) -> None:
    await world.store.find_effect(claim.lease, "mail")


class TestHeartbeats(Suite):
    """Keeping a lease."""

    async def test_a_heartbeat_alone_changes_nothing_a_client_sees(self, world: World) -> None:
        claim = await world.start()
        world.clock.advance(3)
        assert await _beat(world, claim) is BeatAnswer.GO_ON
        assert await world.find(claim.job.id) == claim.job

    async def test_progress_is_stored_and_raises_the_version(self, world: World) -> None:
        claim = await world.start()
        world.clock.advance(3)
        progress = Progress(0.25, "3 of 12 shelves ☂")
        assert await _beat(world, claim, progress) is BeatAnswer.GO_ON
        job = await world.find(claim.job.id)
        assert job == structs.replace(claim.job, version=claim.job.version + 1, updated_at=world.now, progress=progress)
        await _beat(world, claim)
        assert await world.find(claim.job.id) == job
        await _beat(world, claim, Progress(None, "Sorting"))
        assert (await world.find(claim.job.id)).progress == Progress(None, "Sorting")

    async def test_answers_come_in_the_order_of_the_beats(self, world: World) -> None:
        claims = [await world.start() for _ in range(4)]
        await cancel(world, claims[1].job)
        await world.finish(claims[2], DONE)
        beats = [Beat(claim.lease, Progress(0.5, None)) for claim in claims]
        answers = await world.store.extend_leases([*beats, Beat(stale(claims[0].lease))], world.now)
        go_on, ask, lost = BeatAnswer.GO_ON, BeatAnswer.CANCEL, BeatAnswer.LOST
        assert list(answers) == [go_on, ask, lost, go_on, lost]

    async def test_no_beats_no_answers(self, world: World) -> None:
        assert list(await world.store.extend_leases([], world.now)) == []

    async def test_a_request_to_cancel_is_told_at_every_heartbeat(self, world: World) -> None:
        claim = await world.start()
        await cancel(world, claim.job)
        assert [await _beat(world, claim) for _ in range(2)] == [BeatAnswer.CANCEL] * 2

    async def test_heartbeats_keep_a_lease_for_as_long_as_they_come(self, world: World) -> None:
        claim = await world.start()
        for _ in range(10):
            assert await watch(world, LEASE_S - 1) == 0
            assert await _beat(world, claim) is BeatAnswer.GO_ON
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED

    @pytest.mark.parametrize("wrong", [{"token": "0" * 32}, {"attempt": 2}, {"job_id": UNKNOWN_ID}], ids=str)
    async def test_a_lease_is_all_of_its_parts(self, world: World, wrong: dict[str, Any]) -> None:
        claim = await world.start()
        forged = structs.replace(claim, lease=structs.replace(claim.lease, **wrong))
        assert await _beat(world, forged, Progress(1.0, "Mine")) is BeatAnswer.LOST
        for write in (_finish, _fail, _record_effect, _find_effect):
            with pytest.raises(LeaseLost):
                await write(world, forged)
        assert await world.store.find_effect(claim.lease, "mail") is None
        assert await world.find(claim.job.id) == claim.job


class TestRescue(Suite):
    """Taking back what a lost worker held."""

    async def test_a_silent_lease_is_taken_back_after_a_lease_time(self, world: World) -> None:
        claim = await world.start()
        assert await watch(world, LEASE_S - 0.001) == 0
        world.clock.advance(0.001)
        assert await rescue(world) == 1
        job = await world.find(claim.job.id)
        assert job.status is Status.QUEUED
        assert (job.attempt, job.counted_attempts) == (1, 1)
        assert await rescue(world) == 0
        assert list(await world.store.list_attempts(TENANT, job.id)) == [
            AttemptRecord(1, claim.job.updated_at, world.now, "worker_lost", LOST)
        ]

    @pytest.mark.parametrize("hours", [-30 * 24, -5, 5, 30 * 24])
    async def test_a_jump_of_the_wall_clock_rescues_nobody(self, world: World, hours: int) -> None:
        claim = await world.start()
        await rescue(world)
        world.clock.set_wall(world.now + hours * 3_600_000)
        assert await watch(world, LEASE_S - 1) == 0
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED

    async def test_a_rescue_touches_at_most_its_limit(self, world: World) -> None:
        for _ in range(5):
            await world.start()
        assert await watch(world, LEASE_S - 0.001) == 0
        world.clock.advance(0.001)
        assert [await rescue(world, limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_two_rescuers_settle_each_lease_once(self, world: World) -> None:
        for _ in range(20):
            await world.start()
        stores = [world.store, await world.another_store()]
        policies = Policies(world.policies)
        rescued = 0
        for _ in range(6):
            rescues = [store.rescue_leases(policies, world.now, 100) for store in stores for _ in range(3)]
            rescued += sum(await asyncio.gather(*rescues))
            world.clock.advance(LEASE_S / 5)
        assert rescued == 20

    async def test_a_worker_that_beats_in_another_process_is_left_alone(self, world: World) -> None:
        claim = await world.start()
        other = await world.another_store()
        policies = Policies(world.policies)
        for _ in range(20):
            assert await other.rescue_leases(policies, world.now, 10) == 0
            world.clock.advance(LEASE_S / 3)
            assert await _beat(world, claim) is BeatAnswer.GO_ON

    async def test_a_heartbeat_that_comes_while_the_rescue_looks_keeps_the_lease(self, world: World) -> None:
        claim = await world.start()
        assert await watch(world, LEASE_S - 1) == 0
        world.clock.advance(1)

        async def beat_elsewhere() -> None:
            store = await world.factory.open_store(world.clock, False, no_fault)
            await store.extend_leases([Beat(claim.lease)], world.now)
            await store.close()

        def beat() -> None:
            thread = threading.Thread(target=asyncio.run, args=(beat_elsewhere(),))
            thread.start()
            thread.join()

        world.faults.call_at("reap-selected", beat)
        rescued = await rescue(world)
        assert rescued == (0 if world.faults.count("reap-selected") else 1)
        assert (await world.find(claim.job.id)).status is (Status.QUEUED if rescued else Status.RUNNING)

    async def test_lost_on_the_last_attempt_is_a_dead_letter(self, world: World) -> None:
        claim = await world.start(max_attempts=1)
        assert await let_leases_run_out(world) == 1
        job = await world.find(claim.job.id)
        assert (job.status, job.dead_lettered_at) == (Status.FAILED, world.now)
        assert job.error is not None
        assert job.error.category is ErrorCategory.WORKER_LOST

    async def test_a_job_of_an_unknown_operation_goes_back_like_any_other(self, world: World) -> None:
        claim = await world.start()
        del world.policies[claim.job.operation]
        assert await let_leases_run_out(world) == 1
        assert (await world.find(claim.job.id)).status is Status.QUEUED

    async def test_a_lost_job_that_was_told_to_stop_is_cancelled(self, world: World) -> None:
        claim = await world.start()
        await cancel(world, claim.job, "Too late")
        assert await let_leases_run_out(world) == 1
        job = await world.find(claim.job.id)
        assert (job.status, job.cancel_reason, job.error) == (Status.CANCELLED, "Too late", None)

    async def test_past_its_deadline_a_lost_job_is_not_tried_again(self, world: World) -> None:
        claim = await world.start(deadline_at=world.now + 5_000)
        assert await let_leases_run_out(world) == 1
        job = await world.find(claim.job.id)
        assert job.status is Status.FAILED
        assert job.error is not None
        assert job.error.category is ErrorCategory.DEADLINE_EXCEEDED


class TestZombies(Suite):
    """A worker that comes back after its lease was given to another."""

    @pytest.mark.parametrize("write", [_finish, _fail, _record_effect, _find_effect])
    async def test_the_old_worker_can_do_nothing(
        self, world: World, write: Callable[[World, Claim], Awaitable[None]]
    ) -> None:
        old = await world.start()
        await let_leases_run_out(world)
        for holder in (None, await world.restart(old.job.id)):
            before = await world.find(old.job.id)
            with pytest.raises(LeaseLost):
                await write(world, old)
            assert await _beat(world, old, Progress(0.1, "Still here")) is BeatAnswer.LOST
            assert await world.find(old.job.id) == before
            if holder is not None:
                assert await world.store.find_effect(holder.lease, "mail") is None
                assert (await world.finish(holder, DONE)).status is Status.SUCCEEDED
        with pytest.raises(LeaseLost):
            await write(world, old)

    async def test_each_start_has_a_token_and_a_record_of_its_own(self, world: World) -> None:
        first = await world.start()
        await let_leases_run_out(world)
        second = await world.restart(first.job.id)
        assert first.lease.token != second.lease.token
        assert (first.lease.attempt, second.lease.attempt) == (1, 2)
        running = await world.store.list_attempts(TENANT, first.job.id)
        assert [(item.number, item.outcome) for item in running] == [(1, "worker_lost"), (2, None)]
        await world.finish(second, DONE)
        ended = await world.store.list_attempts(TENANT, first.job.id)
        assert [(item.number, item.outcome) for item in ended] == [(1, "worker_lost"), (2, "succeeded")]

    async def test_a_second_finish_is_refused(self, world: World) -> None:
        claim = await world.start()
        done = await world.finish(claim, DONE)
        for outcome in (DONE, FLAKY):
            with pytest.raises(LeaseLost):
                await world.finish(claim, outcome)
        assert await world.find(claim.job.id) == done

    async def test_two_finishes_at_once_and_one_wins(self, world: World) -> None:
        claim = await world.start()
        answers = await asyncio.gather(
            *(world.finish(claim, outcome) for outcome in (DONE, FLAKY) * 5), return_exceptions=True
        )
        assert sum(isinstance(answer, LeaseLost) for answer in answers) == 9
        assert (await world.find(claim.job.id)).version == claim.job.version + 1
