"""The loop: hints wake it, a full batch goes on at once, and nothing it meets ends it."""

from collections.abc import Callable
from dataclasses import replace

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.terms import Terms
from coatcheck.observe.metrics import Metrics
from coatcheck.store.inbox import InboxMeasure
from coatcheck.store.records import Promotion, WakeUp
from coatcheck.testing.conformance.world import LEASE_S, World
from coatcheck.testing.waiting import wait_until_async
from coatcheck.upkeep.loop import Upkeep, UpkeepParts

NEVER_S = 3600.0


def parts(world: World, interval_s: float = 0.05) -> UpkeepParts:
    return UpkeepParts(world.store, Policies(world.policies), Metrics(), world.clock, interval_s, LEASE_S)


async def test_a_hint_brings_the_next_due_job_forward(world: World) -> None:
    promoted: list[InstantMs] = []
    upkeep = Upkeep(parts(world, NEVER_S))
    promote = world.store.promote_due

    async def watched(now: InstantMs, limit: int) -> Promotion:
        promoted.append(now)
        return await promote(now, limit)

    vars(world.store)["promote_due"] = watched
    upkeep.start()
    await wait_until_async(lambda: len(promoted) == 1, "the first look")
    await world.accept(delay_s=60)
    await wait_until_async(lambda: len(promoted) == 2, "a look because of the hint")
    await upkeep.stop()


async def test_due_jobs_are_promoted_at_their_time_without_an_interval(world: World) -> None:
    upkeep = Upkeep(parts(world, NEVER_S))
    await world.accept(delay_s=0.05)
    world.clock.advance(0.03)
    upkeep.start()

    async def is_ready() -> bool:
        world.clock.advance(0.01)
        return (await world.store.measure_queues(world.now))[0].ready == 1

    await wait_until_async(is_ready, "the job to become ready")
    await upkeep.stop()


async def test_full_batches_follow_each_other_at_once(world: World) -> None:
    for _ in range(7):
        await world.accept(delay_s=1)
    world.clock.advance(2)
    upkeep = Upkeep(replace(parts(world, NEVER_S), batch_max=2))
    upkeep.start()

    async def are_ready() -> bool:
        return (await world.store.measure_queues(world.now))[0].ready == 7

    await wait_until_async(are_ready, "all batches")
    await upkeep.stop()


async def test_a_store_with_an_inbox_has_it_looked_into_at_its_own_pace(world: World) -> None:
    looks: list[int] = []

    async def promote_inbox(policies: Policies, terms: Terms, now: InstantMs, limit: int) -> int:
        looks.append(limit)
        return 0

    async def measure_inbox() -> InboxMeasure:
        return InboxMeasure(2, None)

    vars(world.store).update(promote_inbox=promote_inbox, hand_in=promote_inbox, measure_inbox=measure_inbox)
    metrics = Metrics()
    upkeep = Upkeep(replace(parts(world, NEVER_S), inbox_interval_s=0.01, metrics=metrics))
    upkeep.start()
    await wait_until_async(lambda: len(looks) > 3, "several looks while everything else waits")
    await wait_until_async(lambda: metrics.read("inbox_jobs") == 2, "its gauges are set")
    await upkeep.stop()


async def test_it_stops_listening(world: World) -> None:
    callbacks: list[Callable[[WakeUp], None]] = []
    listen = world.store.listen

    def watched(callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        callbacks.append(callback)
        stop = listen(callback)

        def stopped() -> None:
            callbacks.remove(callback)
            stop()

        return stopped

    vars(world.store)["listen"] = watched
    upkeep = Upkeep(parts(world))
    upkeep.start()
    assert len(callbacks) == 1
    await upkeep.stop()
    assert not callbacks
