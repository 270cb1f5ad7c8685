"""The end of an attempt: what each outcome makes of its job, of its result and of the tries that are left."""

from dataclasses import replace

import pytest
from msgspec import structs

from coatcheck.core.backoff import Backoff
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import AttemptRecord, JobRecord, ResultInfo
from coatcheck.core.limits import CRASHES_MAX, INLINE_RESULT_BYTES_MAX
from coatcheck.core.outcome import (
    LOST,
    Cancelled,
    Lost,
    Outcome,
    Released,
    ResultBody,
    RetryLater,
    Succeeded,
)
from coatcheck.core.states import Status
from coatcheck.store.records import StoredResult
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
)

_INNOCENT = Lost(is_blamed=False, is_suspect=False)
_SUSPECT = Lost(is_blamed=False, is_suspect=True)
_GUILTY = Lost(is_blamed=True, is_suspect=True)


async def _read(world: World, job: JobRecord) -> StoredResult | None:
    return await world.store.read_result(TENANT, job.id, world.now)


def _json_of(size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


class TestSuccess(Suite):
    """A result is kept as it was returned."""

    async def test_a_small_json_result_stands_in_the_job(self, world: World) -> None:
        claim = await world.start()
        world.clock.advance(2)
        job = await world.finish(claim, DONE)
        body = DONE.result.body
        assert job == structs.replace(
            claim.job,
            status=Status.SUCCEEDED,
            version=claim.job.version + 1,
            updated_at=world.now,
            finished_at=world.now,
            expires_at=world.now + round(POLICY.retention.succeeded_s * 1000),
            result_expires_at=world.now + round(POLICY.retention.result_s * 1000),
            result=ResultInfo("application/json", len(body), body),
        )
        assert await world.find(job.id) == job
        assert await _read(world, job) == StoredResult("application/json", body, None)

    @pytest.mark.parametrize("is_inline", [True, False])
    async def test_a_large_json_result_stands_beside_it(self, world: World, is_inline: bool) -> None:
        size = INLINE_RESULT_BYTES_MAX + (not is_inline)
        body = _json_of(size)
        job = await world.finish(await world.start(), Succeeded(ResultBody("application/json", body)))
        assert job.result == ResultInfo("application/json", size, body if is_inline else None)
        assert await world.find(job.id) == job
        assert await _read(world, job) == StoredResult("application/json", body, None)

    @pytest.mark.parametrize("body", [b"", b"%PDF-1.7\x00\xff\xfe", b"\x00" * (4 * 1024 * 1024)])
    async def test_a_file_keeps_its_bytes_type_and_name(self, world: World, body: bytes) -> None:
        outcome = Succeeded(ResultBody("application/pdf", body, "Stock ☂.pdf"))
        job = await world.finish(await world.start(), outcome)
        assert job.result == ResultInfo("application/pdf", len(body), None)
        assert await world.find(job.id) == job
        assert await _read(world, job) == StoredResult("application/pdf", body, "Stock ☂.pdf")

    async def test_success_after_failures_carries_no_error(self, world: World) -> None:
        claim = await world.start()
        await world.finish(claim, FLAKY)
        job = await world.finish(await world.restart(claim.job.id), DONE)
        assert (job.status, job.error, job.attempt) == (Status.SUCCEEDED, None, 2)


class TestFailure(Suite):
    """An error is kept for the client and, apart, for the operator."""

    async def test_a_failure_that_may_not_be_tried_again_is_final(self, world: World) -> None:
        claim = await world.start()
        world.clock.advance(2)
        job = await world.finish(claim, BROKEN)
        assert job == structs.replace(
            claim.job,
            status=Status.FAILED,
            version=claim.job.version + 1,
            updated_at=world.now,
            finished_at=world.now,
            expires_at=world.now + round(POLICY.retention.failed_s * 1000),
            error=BROKEN.error,
            dead_lettered_at=world.now,
        )
        assert await world.find(job.id) == job
        assert await _read(world, job) is None
        assert await world.claim() == []

    async def test_another_try_waits_for_its_backoff(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, backoff=Backoff(first_s=10, factor=3, max_s=25))
        claim = await world.start(max_attempts=5)
        for ceiling_s in (10, 25, 25):
            job = await world.finish(claim, FLAKY, jitter=0.5)
            assert job.status is Status.QUEUED
            assert job.available_at == world.now + ceiling_s * 500
            answer = await world.claims()
            assert (list(answer.claims), answer.next_due_at) == ([], job.available_at)
            world.clock.advance(ceiling_s / 2)
            claim = await world.restart(job.id)
        assert (claim.lease.attempt, claim.job.counted_attempts) == (4, 4)

    async def test_the_last_attempt_is_a_dead_letter(self, world: World) -> None:
        claim = await world.start(max_attempts=2)
        assert (await world.finish(claim, FLAKY)).dead_lettered_at is None
        job = await world.finish(await world.restart(claim.job.id), FLAKY)
        assert (job.status, job.error) == (Status.FAILED, FLAKY.error)
        assert job.dead_lettered_at == world.now
        assert await world.claim() == []

    async def test_a_retry_past_the_deadline_is_not_waited_for(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, backoff=Backoff(first_s=60))
        claim = await world.start(deadline_at=world.now + 30_000)
        job = await world.finish(claim, FLAKY, jitter=0.5)
        assert job.status is Status.FAILED
        assert job.dead_lettered_at == world.now
        assert job.error is not None

    async def test_attempts_tell_what_happened(self, world: World) -> None:
        claim = await world.start()
        started_at = []
        for outcome in (FLAKY, RetryLater(0), BROKEN):
            started_at.append(world.now)
            world.clock.advance(1)
            job = await world.finish(claim, outcome)
            world.clock.advance(1)
            if job.status is Status.QUEUED:
                claim = await world.restart(job.id)
        first, second, third = await world.store.list_attempts(TENANT, claim.job.id)
        assert first == AttemptRecord(1, started_at[0], started_at[0] + 1000, "failed", FLAKY.error)
        assert (second.number, second.outcome) == (2, "retry_later")
        assert third == AttemptRecord(3, started_at[2], started_at[2] + 1000, "failed", BROKEN.error)


class TestOtherOutcomes(Suite):
    """Later, given back, lost."""

    async def test_later_is_later_and_counts(self, world: World) -> None:
        claim = await world.start(max_attempts=2)
        job = await world.finish(claim, RetryLater(30))
        assert (job.available_at, job.counted_attempts) == (world.now + 30_000, 1)
        world.clock.advance(30)
        job = await world.finish(await world.restart(job.id), RetryLater(30))
        assert job.status is Status.FAILED
        assert job.error is not None
        assert job.error.category is ErrorCategory.HANDLER_ERROR

    async def test_given_back_does_not_count(self, world: World) -> None:
        claim = await world.start(max_attempts=1)
        for number in range(1, 6):
            job = await world.finish(claim, Released())
            assert (job.status, job.attempt, job.counted_attempts) == (Status.QUEUED, number, 0)
            claim = await world.restart(job.id)
        assert (await world.finish(claim, DONE)).attempt == 6
        attempts = await world.store.list_attempts(TENANT, claim.job.id)
        assert [item.outcome for item in attempts] == ["released"] * 5 + ["succeeded"]

    async def test_given_back_for_a_while(self, world: World) -> None:
        job = await world.finish(await world.start(), Released(delay_s=7))
        assert job.available_at == world.now + 7_000
        assert await world.claim() == []
        world.clock.advance(7)
        await world.restart(job.id)

    async def test_a_neighbour_of_a_crash_pays_nothing(self, world: World) -> None:
        claim = await world.start(max_attempts=1)
        job = await world.finish(claim, _INNOCENT)
        assert (job.status, job.attempt, job.counted_attempts) == (Status.QUEUED, 1, 0)
        assert not (await world.restart(job.id)).is_alone

    async def test_a_suspect_runs_alone_and_then_answers_for_itself(self, world: World) -> None:
        claim = await world.start(max_attempts=1)
        job = await world.finish(claim, _SUSPECT)
        alone = await world.restart(job.id)
        assert alone.is_alone
        job = await world.finish(alone, _GUILTY)
        assert (job.status, job.attempt, job.counted_attempts) == (Status.FAILED, 2, 1)
        assert job.error == LOST

    async def test_a_suspect_waiting_for_its_turn_still_runs_alone(self, world: World) -> None:
        world.policies[OPERATION] = replace(POLICY, backoff=Backoff(first_s=10))
        claim = await world.start()
        job = await world.finish(claim, _GUILTY, jitter=0.9)
        assert job.available_at == world.now + 9_000
        world.clock.advance(9)
        assert (await world.restart(job.id)).is_alone

    async def test_crashes_are_bounded_even_if_none_counts(self, world: World) -> None:
        claim = await world.start()
        for _ in range(CRASHES_MAX - 1):
            job = await world.finish(claim, _INNOCENT)
            assert job.status is Status.QUEUED
            claim = await world.restart(job.id)
        job = await world.finish(claim, _INNOCENT)
        assert (job.status, job.error, job.attempt) == (Status.FAILED, LOST, CRASHES_MAX)


class TestCancelledWhileRunning(Suite):
    """A request to cancel wins over every end but success."""

    @pytest.mark.parametrize(
        "outcome",
        [BROKEN, FLAKY, RetryLater(10), Released(), _INNOCENT, _GUILTY, Cancelled()],
        ids=["broken", "flaky", "later", "released", "innocent", "guilty", "cancelled"],
    )
    async def test_anything_but_success_is_cancelled(self, world: World, outcome: Outcome) -> None:
        claim = await world.start()
        requested = await cancel(world, claim.job, "Not needed any more")
        world.clock.advance(1)
        job = await world.finish(claim, outcome)
        assert (job.status, job.error, job.result) == (Status.CANCELLED, None, None)
        assert (job.cancel_requested, job.cancel_reason) == (True, "Not needed any more")
        assert (job.version, job.finished_at) == (requested.version + 1, world.now)
        assert job.expires_at == world.now + round(POLICY.retention.cancelled_s * 1000)
        assert job.dead_lettered_at is None
        assert await world.find(job.id) == job
        (attempt,) = await world.store.list_attempts(TENANT, job.id)
        assert attempt.finished_at == world.now
        assert attempt.error == getattr(outcome, "error", attempt.error)
        assert await world.claim() == []

    async def test_work_that_is_done_is_done(self, world: World) -> None:
        claim = await world.start()
        await cancel(world, claim.job, "Not needed any more")
        job = await world.finish(claim, DONE)
        assert (job.status, job.cancel_requested) == (Status.SUCCEEDED, True)
        assert job.cancel_reason == "Not needed any more"
        assert await _read(world, job) is not None
