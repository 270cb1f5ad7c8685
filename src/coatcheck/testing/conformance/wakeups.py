"""Wake-ups: everyone who waits is told soon that it is worth looking again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from coatcheck.core.job import Progress
from coatcheck.store.contract import Store
from coatcheck.store.records import Beat, Claim, WakeUp, WakeUpKind
from coatcheck.testing.conformance.world import DONE, FLAKY, Suite, World, cancel
from coatcheck.testing.waiting import wait_until_async


@dataclass
class _Ear:
    """What one listener heard."""

    heard: list[WakeUp] = field(default_factory=list)

    def has_heard(self, kind: WakeUpKind, job_id: str | None = None) -> bool:
        return any(hint.kind is kind and (job_id is None or job_id in hint.job_ids) for hint in self.heard)

    async def must_hear(self, kind: WakeUpKind, job_id: str | None = None) -> None:
        await wait_until_async(lambda: self.has_heard(kind, job_id), f"a wake-up {kind} for {job_id or 'anyone'}")


def _listen(store: Store) -> _Ear:
    ear = _Ear()
    store.listen(ear.heard.append)
    return ear


async def _succeed(world: World, claim: Claim) -> None:
    await world.finish(claim, DONE)


async def _retry(world: World, claim: Claim) -> None:
    await world.finish(claim, FLAKY)


async def _progress(world: World, claim: Claim) -> None:
    await world.store.extend_leases([Beat(claim.lease, Progress(0.5, None))], world.now)


async def _ask_to_stop(world: World, claim: Claim) -> None:
    await cancel(world, claim.job)


class TestWakeUps(Suite):
    """Hints that arrive."""

    async def test_new_work_is_ready(self, world: World) -> None:
        ear = _listen(world.store)
        await world.accept()
        await ear.must_hear(WakeUpKind.READY)

    async def test_delayed_work_is_scheduled_and_ready_when_it_is_due(self, world: World) -> None:
        ear = _listen(world.store)
        await world.accept(delay_s=60)
        await ear.must_hear(WakeUpKind.SCHEDULED)
        assert not ear.has_heard(WakeUpKind.READY)
        world.clock.advance(60)
        await world.store.promote_due(world.now, 10)
        await ear.must_hear(WakeUpKind.READY)

    async def test_a_start_is_a_change(self, world: World) -> None:
        ear = _listen(world.store)
        claim = await world.start()
        await ear.must_hear(WakeUpKind.CHANGED, claim.job.id)

    @pytest.mark.parametrize("change", [_succeed, _retry, _progress, _ask_to_stop])
    async def test_every_change_is_told(self, world: World, change: Callable[[World, Claim], Awaitable[None]]) -> None:
        claim = await world.start()
        ear = _listen(world.store)
        await change(world, claim)
        await ear.must_hear(WakeUpKind.CHANGED, claim.job.id)

    async def test_a_cancelled_waiting_job_is_a_change(self, world: World) -> None:
        job = await world.accept()
        ear = _listen(world.store)
        await cancel(world, job)
        await ear.must_hear(WakeUpKind.CHANGED, job.id)

    async def test_another_try_is_told_to_workers(self, world: World) -> None:
        claim = await world.start()
        ear = _listen(world.store)
        await world.finish(claim, FLAKY)
        told = (WakeUpKind.READY, WakeUpKind.SCHEDULED)
        await wait_until_async(lambda: any(map(ear.has_heard, told)), "a wake-up for another try")

    async def test_a_worker_hears_whom_to_stop(self, world: World) -> None:
        claim = await world.start()
        ear = _listen(world.store)
        await cancel(world, claim.job)
        await ear.must_hear(WakeUpKind.CANCEL, claim.job.id)

    async def test_the_relay_hears_of_entries(self, telling_world: World) -> None:
        ear = _listen(telling_world.store)
        await telling_world.accept()
        await ear.must_hear(WakeUpKind.OUTBOX)

    async def test_another_process_hears_too(self, world: World) -> None:
        ear = _listen(await world.another_store())
        claim = await world.start()
        await ear.must_hear(WakeUpKind.READY)
        await cancel(world, claim.job)
        await ear.must_hear(WakeUpKind.CANCEL, claim.job.id)
        await ear.must_hear(WakeUpKind.CHANGED, claim.job.id)

    async def test_hints_come_on_the_event_loop(self, world: World) -> None:
        loops: list[asyncio.AbstractEventLoop] = []
        world.store.listen(lambda hint: loops.append(asyncio.get_running_loop()))
        await world.accept()
        await wait_until_async(lambda: bool(loops), "a wake-up")
        assert set(loops) == {asyncio.get_running_loop()}

    async def test_who_stops_listening_hears_nothing_more(self, world: World) -> None:
        first = _Ear()
        stop = world.store.listen(first.heard.append)
        second = _listen(world.store)
        stop()
        stop()
        await world.accept()
        await second.must_hear(WakeUpKind.READY)
        assert first.heard == []
