"""Each sweep does one bounded piece of work, counts it, and leaves alone what is not due."""

from typing import Any

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.observe.metrics import Metrics
from coatcheck.store.inbox import InboxMeasure
from coatcheck.store.records import Disposition, Prunable, Submission, Tombstone
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import DONE, LEASE_S, OPERATION, TENANT, World
from coatcheck.upkeep.deadlines import DueSweep, OverdueSweep
from coatcheck.upkeep.gauges import InboxGauges, QueueGauges
from coatcheck.upkeep.inbox import InboxSweep
from coatcheck.upkeep.rescue import RescueSweep
from coatcheck.upkeep.retention import RetentionSweep


async def over_a_lease(world: World, sweep: RescueSweep, limit: int = 10) -> int:
    """Look often enough for a whole lease time; what the last look found."""
    count = await sweep.run_once(limit)
    for _ in range(3):
        assert count == 0
        world.clock.advance(LEASE_S / 3)
        count = await sweep.run_once(limit)
    return count


async def test_rescue_takes_back_an_attempt_whose_lease_ran_out(world: World) -> None:
    metrics = Metrics()
    sweep = RescueSweep(world.store, Policies(world.policies), metrics, world.clock)
    await world.start()
    assert await over_a_lease(world, sweep) == 1
    assert await sweep.run_once(10) == 0
    assert metrics.read("rescued") == 1


async def test_rescue_is_bounded(world: World) -> None:
    sweep = RescueSweep(world.store, Policies(world.policies), Metrics(), world.clock)
    for _ in range(3):
        await world.accept()
    await world.claim(slots=3)
    assert await over_a_lease(world, sweep, limit=2) == 2
    assert [await sweep.run_once(2) for _ in range(2)] == [1, 0]


async def test_due_jobs_become_ready_and_the_next_time_is_known(world: World) -> None:
    sweep = DueSweep(world.store, world.clock)
    await world.accept(delay_s=5)
    later = await world.accept(delay_s=60)
    assert await sweep.run_once(10) == 0
    assert sweep.next_due_at == world.now + 5_000
    world.clock.advance(5)
    assert await sweep.run_once(10) == 1
    assert sweep.next_due_at == later.available_at


async def test_overdue_jobs_end_failed_though_no_worker_asks(world: World) -> None:
    metrics = Metrics()
    sweep = OverdueSweep(world.store, Policies(world.policies), metrics, world.clock)
    job = await world.accept(deadline_at=world.now + 2_000)
    assert await sweep.run_once(10) == 0
    world.clock.advance(3)
    assert await sweep.run_once(10) == 1
    found = await world.store.find_job(TENANT, job.id, world.now)
    assert found is not None
    assert not isinstance(found, Tombstone)
    assert found.status is Status.FAILED
    assert metrics.read("expired") == 1


async def test_retention_prunes_one_kind_each(world: World) -> None:
    metrics = Metrics()
    sweeps = {what: RetentionSweep(what, world.store, metrics, world.clock) for what in Prunable}
    job = await world.finish(await world.start(), DONE)
    world.clock.advance(600)
    assert await sweeps[Prunable.RESULTS].run_once(10) == 1
    assert await sweeps[Prunable.JOBS].run_once(10) == 0
    world.clock.advance(600)
    assert await sweeps[Prunable.JOBS].run_once(10) == 1
    assert isinstance(await world.store.find_job(TENANT, job.id, world.now), Tombstone)
    assert metrics.read("pruned", what="results") == 1
    assert metrics.read("pruned", what="jobs") == 1


async def test_gauges_show_the_queues_and_return_to_zero(world: World) -> None:
    metrics = Metrics()
    gauges = QueueGauges(world.store, frozenset({OPERATION, "never-used"}), metrics, world.clock)
    await world.accept()
    await world.accept(delay_s=60)
    world.clock.advance(4)
    assert await gauges.run_once(10) == 0
    assert metrics.read("ready_jobs", operation=OPERATION) == 1
    assert metrics.read("scheduled_jobs", operation=OPERATION) == 1
    assert metrics.read("oldest_ready_age_seconds", operation=OPERATION) == 4
    assert metrics.read("ready_jobs", operation="never-used") == 0
    await world.claim()
    await gauges.run_once(10)
    assert metrics.read("ready_jobs", operation=OPERATION) == 0
    assert metrics.read("running_jobs", operation=OPERATION) == 1
    assert metrics.read("oldest_ready_age_seconds", operation=OPERATION) == 0


async def test_the_inbox_is_promoted_in_bounded_batches() -> None:
    asked: list[int] = []

    class Inbox:
        async def hand_in(self, connection: Any, submission: Submission) -> Disposition:
            raise AssertionError("upkeep hands nothing in")

        async def promote_inbox(self, policies: Policies, terms: Terms, now: InstantMs, limit: int) -> int:
            asked.append(limit)
            return 3 if len(asked) == 1 else 0

        async def measure_inbox(self) -> InboxMeasure:
            return InboxMeasure(0, None) if asked else InboxMeasure(3, clock.now() - 1500)

    metrics, clock = Metrics(), ManualClock()
    gauges = InboxGauges(Inbox(), metrics, clock)
    assert await gauges.run_once(10) == 0
    assert (metrics.read("inbox_jobs"), metrics.read("inbox_oldest_age_seconds")) == (3, 1.5)
    sweep = InboxSweep(Inbox(), Policies({}), lambda: ANY_TERMS, metrics, clock)
    assert [await sweep.run_once(3) for _ in range(2)] == [3, 0]
    assert asked == [3, 3]
    assert metrics.read("inbox_promoted") == 3
    await gauges.run_once(10)
    assert (metrics.read("inbox_jobs"), metrics.read("inbox_oldest_age_seconds")) == (0, 0)
