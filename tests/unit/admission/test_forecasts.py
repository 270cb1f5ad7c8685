"""When a job will start: what is computed, and when nothing is said because too little is known."""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.admission.buckets import LocalBuckets
from coatcheck.admission.forecasts import BUSY_MEASURES_MIN, Forecasts
from coatcheck.admission.gate import Passage
from coatcheck.admission.measures import FRESH_S, STALE_S, Measures
from coatcheck.admission.options import Admitted
from coatcheck.admission.rates import Rates
from coatcheck.admission.saturation import Saturation
from coatcheck.app import App, Operation
from coatcheck.core.forecast import Lines, Pace
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, LimitBook, LimitKey, LimitName
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.queues import QueueStore
from coatcheck.store.records import QueueMeasure, TenantQueue
from coatcheck.testing.clock import ManualClock

app = App("shop")


@app.operation("reports", queue_limit="60s")
async def report(request: dict[str, int], job: object) -> None:
    return None


OPERATION: Operation = app.operations["reports"]


class Queue:
    """Plays the store: its queue is whatever the test says."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.waiting: dict[str, int] = {}
        self.running = 4
        self.runs = 100
        self.is_away = False
        self.oldest_s = 0.0
        self.takes_s = 0.0
        self.last_priority = 5

    async def measure_queues(self, now: InstantMs) -> Sequence[QueueMeasure]:
        if self.is_away:
            raise StoreUnavailable("gone")
        self._clock.advance(self.takes_s)
        lines = [TenantQueue(tenant, count, now, now, self.last_priority) for tenant, count in self.waiting.items()]
        ready = sum(self.waiting.values())
        oldest = now - round(self.oldest_s * 1000) if ready else None
        return [QueueMeasure("reports", ready, 0, self.running, oldest, 2.0, self.runs, 0.5, lines)]


class Scene:
    """A queue, and admission that looks at it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue = Queue(self.clock)
        self.measures = Measures(cast("QueueStore", self.queue), self.clock)
        self.forecasts = Forecasts(self.measures, self.clock, lambda tenant: 1.0)
        self.book = LimitBook({})
        self.saturation = Saturation(self, self.measures, self.forecasts, self.clock)

    def limit(self, values: Mapping[LimitKey, float]) -> None:
        self.book = LimitBook(values)

    async def measure(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.advance(FRESH_S)
            self.measures.look()
            await self.measures.measured()

    def let_in(self, tenant: str) -> Passage:
        return Passage(self.measures.tallies("reports", tenant), Rates(self, LocalBuckets(self.clock)))

    async def ask(self, tenant: str = "acme", delay_s: float = 0, priority: int = 5) -> Refused | None:
        now = self.clock.now()
        start_at = now + round(delay_s * 1000)
        admitted = Admitted(b"{}", now, start_at, None, priority, "c", None, None)
        try:
            if self.saturation.is_blind(OPERATION.name):
                await self.measures.measured()
            self.saturation.require_room(OPERATION, admitted, tenant)
        except Refused as refused:
            return refused
        return None


async def code_of(scene: Scene, tenant: str = "acme", priority: int = 5) -> str | None:
    refused = await scene.ask(tenant, priority=priority)
    return None if refused is None else refused.code


@given(others=st.lists(st.integers(1, 30), max_size=8), own=st.integers(0, 40))
def test_tenants_take_turns(others: list[int], own: int) -> None:
    """Counted by taking the turns, with the others going first in each round."""
    waiting = {str(number): count for number, count in enumerate(others)} | {"acme": own}
    left, ahead, own_left = dict(waiting), 0, own
    while True:
        for tenant in waiting:
            if tenant != "acme" and left[tenant]:
                left[tenant] -= 1
                ahead += 1
        if own_left == 0:
            break
        own_left -= 1
        ahead += 1
    lines = Lines({tenant: count for tenant, count in waiting.items() if count}, lambda tenant: 1.0)
    assert lines.ahead("acme", own) == pytest.approx(ahead)


def test_weights_give_shares() -> None:
    lines = Lines({"acme": 10, "big": 1_000, "small": 3}, lambda tenant: 4.0 if tenant == "big" else 1.0)
    assert lines.ahead("acme", 9) == pytest.approx(9 + 40 + 3)
    assert lines.ahead("big", 999) == pytest.approx(999 + 10 + 3)
    assert lines.ahead("new", 0) == pytest.approx(4 + 1 + 1)


def test_the_bound_grows_with_the_spread_and_shrinks_with_the_sample() -> None:
    assert Pace(4, 2.0, 0.0, 100).bound_s(200) == pytest.approx(101)
    assert Pace(4, 2.0, 1.0, 20).bound_s(200) > Pace(4, 2.0, 1.0, 200).bound_s(200) > 101
    assert Pace(4, 2.0, 1.0, 20).most_s(200) == Pace(4, 2.0, 1.0, 20).bound_s(200) - 1


async def test_a_busy_queue_is_known_after_a_few_measures_and_refuses_what_would_come_too_late() -> None:
    scene = Scene()
    scene.queue.waiting = {"a": 500, "b": 500}
    for _ in range(BUSY_MEASURES_MIN - 1):
        await scene.measure()
        assert await scene.ask() is None
    await scene.measure()
    # 4 at once for 2 s each: 120 jobs are started within a minute.
    assert await code_of(scene, "newcomer") is None
    refused = await scene.ask("a")
    assert refused is not None
    assert refused.code == "too-many-queued"
    assert dict(refused.headers)["Retry-After"] == "60"


async def test_it_is_everybody_s_fault_when_a_newcomer_would_be_late_too() -> None:
    scene = Scene()
    scene.queue.waiting = {f"tenant-{number}": 3 for number in range(300)}
    await scene.measure(BUSY_MEASURES_MIN)
    assert await code_of(scene, "newcomer") == "saturated"
    assert await code_of(scene, "tenant-7") == "saturated"


@pytest.mark.parametrize("change", ["few runs", "idle", "no worker", "pause", "stale", "delayed"])
async def test_nothing_is_refused_on_too_little_knowledge(change: str) -> None:
    scene = Scene()
    scene.queue.waiting = {"acme": 5_000}
    if change == "few runs":
        scene.queue.runs = 19
    await scene.measure(BUSY_MEASURES_MIN)
    if change == "idle":
        scene.queue.waiting = {}
        await scene.measure()
        scene.queue.waiting = {"acme": 5_000}
        await scene.measure(BUSY_MEASURES_MIN - 1)
    elif change == "no worker":
        scene.queue.running = 0
        await scene.measure()
    elif change == "pause":
        scene.clock.advance(STALE_S + 1)
        await scene.measure(BUSY_MEASURES_MIN - 1)
    elif change == "stale":
        scene.queue.is_away = True
        await scene.measure(round(STALE_S) + 1)
    else:
        assert change in {"few runs", "delayed"}
    assert await scene.ask(delay_s=5 if change == "delayed" else 0) is None


async def test_only_jobs_that_surely_go_first_are_counted() -> None:
    scene = Scene()
    scene.queue.waiting, scene.queue.last_priority = {"acme": 5_000}, 9
    await scene.measure(BUSY_MEASURES_MIN)
    assert await code_of(scene, priority=5) is None
    assert await code_of(scene, priority=9) == "too-many-queued"


async def test_what_was_let_in_since_the_measure_counts() -> None:
    scene = Scene()
    scene.queue.waiting = {"acme": 100}
    await scene.measure(BUSY_MEASURES_MIN)
    let_in = 0
    while let_in < 5_000 and await scene.ask() is None:
        scene.let_in("acme").settle(is_accepted=True)
        let_in += 1
    assert 10 <= let_in <= 20
    assert await scene.ask("newcomer") is None


async def test_one_whose_own_jobs_are_before_it_is_told_how_many_it_may_have() -> None:
    scene = Scene()
    scene.queue.waiting = {"acme": 100}
    await scene.measure(BUSY_MEASURES_MIN)
    queued = 100
    while (refused := await scene.ask()) is None:
        scene.let_in("acme").settle(is_accepted=True)
        queued += 1
    fields = dict(refused.headers)
    assert fields["RateLimit-Policy"] == f'"in-time-reports";q={queued};qu="concurrent-requests"'
    assert fields["RateLimit"] == f'"in-time-reports";r=0;t={fields["Retry-After"]}'


async def test_the_depth_of_the_queue_is_limited() -> None:
    scene = Scene()
    scene.queue.waiting = {"a": 6, "b": 2}
    for scope in (ALL, "reports"):
        scene.limit({(LimitName.QUEUED, ALL, scope): 10})
        await scene.measure()
        assert await scene.ask() is None
        passages = [scene.let_in("c"), scene.let_in("c")]
        refused = await scene.ask()
        assert refused is not None
        assert (refused.code, dict(refused.headers)["Retry-After"]) == ("saturated", "1")
        for passage in passages:
            passage.settle(is_accepted=False)
        assert await scene.ask() is None
    scene.limit({(LimitName.QUEUED, ALL, "other"): 0})
    assert await scene.ask() is None


async def test_the_first_question_after_a_pause_waits_for_a_measure() -> None:
    scene = Scene()
    scene.queue.waiting = {"a": 11}
    scene.limit({(LimitName.QUEUED, ALL, ALL): 10})
    assert await code_of(scene) == "saturated"
    scene.queue.waiting = {}
    scene.clock.advance(60)
    assert await code_of(scene) is None


async def test_a_measure_that_takes_long_is_good_for_longer() -> None:
    scene = Scene()
    scene.queue.waiting, scene.queue.takes_s = {"a": 500}, 5.0
    scene.limit({(LimitName.QUEUED, ALL, ALL): 10})
    assert await code_of(scene) == "saturated"
    scene.limit({})
    await scene.measure(BUSY_MEASURES_MIN)
    assert await code_of(scene, "a") == "too-many-queued"


async def test_a_queue_as_old_as_it_may_be_takes_no_more() -> None:
    scene = Scene()
    scene.queue.waiting, scene.queue.running = {"a": 1}, 0
    scene.limit({(LimitName.AGE_S, ALL, ALL): 30})
    scene.queue.oldest_s = 29
    assert await code_of(scene) is None
    scene.queue.oldest_s = 31
    await scene.measure()
    assert await code_of(scene) == "saturated"
    scene.queue.waiting = {}
    await scene.measure()
    assert await code_of(scene) is None


async def test_a_store_that_cannot_be_asked_is_left_to_say_so_itself() -> None:
    scene = Scene()
    scene.queue.is_away = True
    scene.limit({(LimitName.QUEUED, ALL, ALL): 0})
    assert await scene.ask() is None


async def test_0_takes_nothing() -> None:
    for name in (LimitName.QUEUED, LimitName.AGE_S):
        scene = Scene()
        scene.limit({(name, ALL, "reports"): 0})
        assert await code_of(scene) == "saturated"


async def test_what_is_on_its_way_while_a_measure_is_taken_is_counted_until_the_next() -> None:
    scene = Scene()
    await scene.measure()
    earlier = scene.let_in("a")
    scene.clock.advance(FRESH_S)
    scene.measures.look()
    later = scene.let_in("b")
    earlier.settle(is_accepted=True)
    await scene.measures.measured()
    assert (scene.measures.since("reports"), scene.measures.since("reports", "a")) == (2, 1)
    later.settle(is_accepted=True)
    await scene.measure()
    assert scene.measures.since("reports") == 0
