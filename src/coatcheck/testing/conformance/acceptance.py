"""Acceptance: a new job is durable as it was handed in, and one key stands for one job as long as its window."""

import asyncio

import pytest

from coatcheck.core.job import JobRecord
from coatcheck.core.limits import IDEMPOTENCY_KEY_CHARS_MAX
from coatcheck.core.policy import DAY_S, Policies
from coatcheck.core.states import Status
from coatcheck.store.records import (
    Accepted,
    EraseDisposition,
    JobQuery,
    KeyConflict,
    KeyOfExpiredJob,
    Prunable,
    Replayed,
    Tombstone,
)
from coatcheck.testing.conformance.world import (
    OTHER_OPERATION,
    POLICY,
    TENANT,
    Suite,
    World,
    job_in,
    key_of,
)

_OTHER_BODY = "e" * 64


async def _count(world: World, tenant: str = TENANT) -> int:
    return len((await world.store.list_jobs(JobQuery(tenant, 200), world.now)).jobs)


class TestAcceptance(Suite):
    """What a 202 says is stored."""

    async def test_a_new_job_stands_as_it_was_handed_in(self, world: World) -> None:
        submission = world.submission(priority=2, traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")
        disposition = await world.store.accept_job(submission)
        expected = JobRecord(
            id=submission.job_id,
            tenant=submission.tenant,
            operation=submission.operation,
            operation_version=submission.operation_version,
            status=Status.QUEUED,
            version=1,
            attempt=0,
            counted_attempts=0,
            max_attempts=submission.max_attempts,
            priority=2,
            created_at=world.now,
            updated_at=world.now,
            available_at=world.now,
            correlation_id=submission.correlation_id,
            chain_id=submission.job_id,
            traceparent=submission.traceparent,
        )
        assert disposition == Accepted(expected)
        assert await world.find(submission.job_id) == expected

    async def test_what_a_key_stands_for_is_found_without_writing_anything(self, world: World) -> None:
        store = world.store
        assert await store.find_earlier(world.submission()) is None
        assert await store.find_earlier(world.submission(key=key_of(world, "k"))) is None
        job = await world.accept(key=key_of(world, "k"))
        again = world.submission(key=key_of(world, "k"))
        assert await store.find_earlier(again) == Replayed(job)
        other = world.submission(key=key_of(world, "k", fingerprint=_OTHER_BODY))
        assert await store.find_earlier(other) == KeyConflict(job.id)
        assert await store.find_earlier(world.submission(tenant="stranger", key=key_of(world, "k"))) is None
        assert await store.find_earlier(world.submission(key=key_of(world, "new"))) is None
        assert await _count(world) == 1
        world.clock.advance(DAY_S)
        assert await store.find_earlier(world.submission(key=key_of(world, "k"))) is None

    async def test_start_and_deadline_are_kept(self, world: World) -> None:
        job = await world.accept(delay_s=90, deadline_at=world.now + 120_000)
        assert job.status is Status.QUEUED
        assert job.available_at == world.now + 90_000
        assert job.deadline_at == world.now + 120_000
        assert await world.find(job.id) == job

    async def test_the_payload_reaches_the_worker_byte_for_byte(self, world: World) -> None:
        payload = '{"branch": "Köln ☂",\n "titles": [1, 1.0]}'.encode()
        claim = await world.start(payload=payload)
        assert claim.payload == payload

    async def test_a_payload_of_one_mebibyte_is_kept(self, world: World) -> None:
        payload = b'"' + b"x" * (1024 * 1024 - 2) + b'"'
        claim = await world.start(payload=payload)
        assert claim.payload == payload

    async def test_without_a_key_each_submission_is_a_job(self, world: World) -> None:
        ids = {(await world.accept()).id for _ in range(3)}
        assert len(ids) == 3
        assert await _count(world) == 3


class TestKeys(Suite):
    """One key, one job."""

    @pytest.mark.parametrize("status", sorted(Status))
    async def test_a_replay_answers_with_the_job_as_it_stands(self, world: World, status: Status) -> None:
        key = key_of(world)
        job = await job_in(world, status, key=key)
        world.clock.advance(5)
        replay = await world.store.accept_job(world.submission(key=key, priority=1, correlation_id="another"))
        assert replay == Replayed(job)
        assert await world.find(job.id) == job
        assert await _count(world) == 1

    async def test_another_body_is_refused_and_uses_up_nothing(self, world: World) -> None:
        job = await world.accept(key=key_of(world))
        conflicting = world.submission(key=key_of(world, fingerprint=_OTHER_BODY))
        for _ in range(2):
            assert await world.store.accept_job(conflicting) == KeyConflict(job.id)
            assert await world.store.accept_job(world.submission(key=key_of(world))) == Replayed(job)
        assert await _count(world) == 1
        assert await world.store.find_job(TENANT, conflicting.job_id, world.now) is None

    async def test_a_key_belongs_to_its_tenant_and_operation(self, world: World) -> None:
        one = await world.accept(key=key_of(world))
        two = await world.accept(key=key_of(world), tenant="other")
        three = await world.accept(key=key_of(world), operation=OTHER_OPERATION)
        assert len({one.id, two.id, three.id}) == 3
        for job in (one, two, three):
            same = world.submission(key=key_of(world), tenant=job.tenant, operation=job.operation)
            assert await world.store.accept_job(same) == Replayed(job)

    async def test_a_key_is_only_text(self, world: World) -> None:
        texts = ["*", "%", "_", ":", "'", '"', "a", "A", "ä", " ", "1", "01", "x" * IDEMPOTENCY_KEY_CHARS_MAX]
        jobs = {text: await world.accept(key=key_of(world, text)) for text in texts}
        assert len({job.id for job in jobs.values()}) == len(texts)
        for text, job in jobs.items():
            assert await world.store.accept_job(world.submission(key=key_of(world, text))) == Replayed(job)

    async def test_after_its_window_a_key_is_free_though_its_job_lives_on(self, world: World) -> None:
        first = await world.accept(key=key_of(world, window_s=60))
        world.clock.advance(59.999)
        assert await world.store.accept_job(world.submission(key=key_of(world, window_s=60))) == Replayed(first)
        world.clock.advance(0.001)
        second = await world.accept(key=key_of(world, window_s=60, fingerprint=_OTHER_BODY))
        assert second.id != first.id
        assert await world.find(first.id) == first
        again = world.submission(key=key_of(world, window_s=60, fingerprint=_OTHER_BODY))
        assert await world.store.accept_job(again) == Replayed(second)

    async def test_a_key_outlives_its_job_by_the_tombstone(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED, key=key_of(world, window_s=5000))
        world.clock.advance(POLICY.retention.succeeded_s)
        for prune in (False, True):
            if prune:
                assert await world.store.prune_expired(Prunable.JOBS, world.now, 10) == 1
            same = world.submission(key=key_of(world))
            assert await world.store.accept_job(same) == KeyOfExpiredJob(job.id)
            other = world.submission(key=key_of(world, fingerprint=_OTHER_BODY))
            assert await world.store.accept_job(other) == KeyConflict(job.id)

    async def test_the_key_of_an_erased_job_is_not_free(self, world: World) -> None:
        job = await job_in(world, Status.FAILED, key=key_of(world))
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.ERASED
        assert await world.store.accept_job(world.submission(key=key_of(world))) == KeyOfExpiredJob(job.id)

    async def test_a_tombstone_outlives_the_key(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED, key=key_of(world, window_s=10 * round(DAY_S)))
        world.clock.advance(POLICY.retention.succeeded_s + POLICY.retention.tombstone_s + 1)
        await world.store.prune_expired(Prunable.JOBS, world.now, 10)
        assert await world.store.prune_expired(Prunable.TOMBSTONES, world.now, 10) == 0
        assert isinstance(await world.store.find_job(TENANT, job.id, world.now), Tombstone)
        assert await world.store.accept_job(world.submission(key=key_of(world))) == KeyOfExpiredJob(job.id)

    async def test_the_key_of_a_cancelled_job_replays_and_never_runs(self, world: World) -> None:
        job = await world.accept(key=key_of(world))
        await world.store.cancel_job(TENANT, job.id, None, Policies(world.policies), world.now)
        replay = await world.store.accept_job(world.submission(key=key_of(world)))
        assert isinstance(replay, Replayed)
        assert replay.job.status is Status.CANCELLED
        assert await world.claim() == []


class TestKeyRaces(Suite):
    """Submissions of one key that arrive together."""

    async def test_fifty_at_once_make_one_job(self, world: World) -> None:
        submissions = [world.submission(key=key_of(world)) for _ in range(50)]
        answers = await asyncio.gather(*map(world.store.accept_job, submissions))
        (accepted,) = [answer for answer in answers if isinstance(answer, Accepted)]
        replays = [answer for answer in answers if isinstance(answer, Replayed)]
        assert len(replays) == 49
        assert {replay.job.id for replay in replays} == {accepted.job.id}
        assert await _count(world) == 1
        assert len(await world.claim(slots=50)) == 1

    async def test_fifty_bodies_at_once_make_one_job(self, world: World) -> None:
        submissions = [world.submission(key=key_of(world, fingerprint=f"{n:064}")) for n in range(50)]
        answers = await asyncio.gather(*map(world.store.accept_job, submissions))
        (accepted,) = [answer for answer in answers if isinstance(answer, Accepted)]
        assert answers.count(KeyConflict(accepted.job.id)) == 49
        assert await _count(world) == 1

    async def test_two_processes_agree_on_the_job(self, world: World) -> None:
        stores = [world.store, await world.another_store()]
        submissions = [world.submission(key=key_of(world)) for _ in range(40)]
        answers = await asyncio.gather(*(stores[n % 2].accept_job(item) for n, item in enumerate(submissions)))
        jobs = [answer.job for answer in answers if isinstance(answer, Accepted | Replayed)]
        assert len(jobs) == 40
        assert len({job.id for job in jobs}) == 1
        assert await _count(world) == 1

    async def test_read_your_write_on_every_process(self, world: World) -> None:
        other = await world.another_store()
        for _ in range(10):
            job = await world.accept()
            assert await other.find_job(TENANT, job.id, world.now) == job
