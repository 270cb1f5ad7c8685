"""Effects: what a job's chain did once is known to every later attempt and redrive of it, and to nobody else."""

import asyncio

from coatcheck.core.job import JobRecord
from coatcheck.core.limits import EFFECT_BYTES_MAX, EFFECT_NAME_CHARS_MAX
from coatcheck.core.states import Status
from coatcheck.store.records import Claim, Prunable, Redriving
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    POLICY,
    TENANT,
    Suite,
    World,
)


async def _record(world: World, claim: Claim, name: str, value: bytes) -> bytes:
    return await world.store.record_effect(claim.lease, name, value, world.now)


async def _redrive(world: World, job: JobRecord) -> Claim:
    redriving = Redriving(job.tenant, job.id, world.submission().job_id, world.now)
    new = await world.store.redrive_job(redriving)
    assert isinstance(new, JobRecord)
    return await world.restart(new.id)


class TestEffects(Suite):
    """Recorded once."""

    async def test_the_first_value_stands(self, world: World) -> None:
        claim = await world.start()
        assert await world.store.find_effect(claim.lease, "mail") is None
        assert await _record(world, claim, "mail", b'"first"') == b'"first"'
        assert await _record(world, claim, "mail", b'"second"') == b'"first"'
        assert await world.store.find_effect(claim.lease, "mail") == b'"first"'
        assert await world.find(claim.job.id) == claim.job

    async def test_the_same_effect_recorded_by_many_at_once(self, world: World) -> None:
        claim = await world.start()
        answers = await asyncio.gather(*(_record(world, claim, "mail", b"%d" % n) for n in range(20)))
        assert len(set(answers)) == 1

    async def test_names_and_jobs_keep_apart(self, world: World) -> None:
        one, two = await world.start(), await world.start()
        names = ["mail", "Mail", "mail ", "%", "*", "m" * EFFECT_NAME_CHARS_MAX]
        for claim in (one, two):
            for name in names:
                value = f"{claim.job.id} {name}".encode()
                assert await _record(world, claim, name, value) == value

    async def test_the_largest_value_and_the_empty_one_are_kept(self, world: World) -> None:
        claim = await world.start()
        for name, value in (("large", b"\xff" * EFFECT_BYTES_MAX), ("empty", b"")):
            assert await _record(world, claim, name, value) == value
            assert await world.store.find_effect(claim.lease, name) == value

    async def test_a_later_attempt_finds_it(self, world: World) -> None:
        claim = await world.start()
        await _record(world, claim, "mail", b"sent")
        await world.finish(claim, FLAKY)
        again = await world.restart(claim.job.id)
        assert await world.store.find_effect(again.lease, "mail") == b"sent"

    async def test_every_redrive_of_the_chain_finds_it(self, world: World) -> None:
        claim = await world.start()
        await _record(world, claim, "mail", b"sent")
        for name in ("first", "second"):
            claim = await _redrive(world, await world.finish(claim, BROKEN))
            assert await world.store.find_effect(claim.lease, "mail") == b"sent"
            await _record(world, claim, name, b"yes")
        assert await world.store.find_effect(claim.lease, "first") == b"yes"
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED

    async def test_it_lasts_as_long_as_any_job_of_the_chain(self, world: World) -> None:
        claim = await world.start()
        await _record(world, claim, "mail", b"sent")
        first = await world.finish(claim, BROKEN)
        world.clock.advance(POLICY.retention.failed_s - 1)
        second = await _redrive(world, first)
        world.clock.advance(2)
        assert await world.store.prune_expired(Prunable.JOBS, world.now, 10) == 1
        assert await world.store.find_effect(second.lease, "mail") == b"sent"
        third = await _redrive(world, await world.finish(second, BROKEN))
        assert third.job.chain_id == first.id
        assert await world.store.find_effect(third.lease, "mail") == b"sent"

    async def test_erasing_a_job_of_a_chain_keeps_the_effects_of_the_running_one(self, world: World) -> None:
        claim = await world.start()
        await _record(world, claim, "mail", b"sent")
        first = await world.finish(claim, BROKEN)
        second = await _redrive(world, first)
        await world.store.erase_job(TENANT, first.id, world.now)
        assert await world.store.find_effect(second.lease, "mail") == b"sent"
