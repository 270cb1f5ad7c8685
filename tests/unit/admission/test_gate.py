"""The gate: whoever waits for tokens has its place in the queue already."""

import asyncio
from collections.abc import Sequence

import pytest
from test_forecasts import OPERATION, Scene

from coatcheck.admission.buckets import Draw
from coatcheck.admission.gate import Gate, Passage
from coatcheck.admission.options import Admitted
from coatcheck.admission.rates import Rates
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, EACH, LimitName

PLACES = 3


class SlowBuckets:
    """Buckets that another process has to be asked for, which answers when the test says so."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.given_back = 0

    def take_now(self, draws: Sequence[Draw]) -> bool | None:
        return None

    async def take(self, draws: Sequence[Draw]) -> bool:
        return await asyncio.shield(self.answer)

    def give_back(self, draws: Sequence[Draw]) -> None:
        self.given_back += 1

    def missing(self, draws: Sequence[Draw]) -> Sequence[float]:
        return [draw.size.burst for draw in draws]


class Door:
    """A gate before a queue with a few places, and those who come to it."""

    def __init__(self, scene: Scene) -> None:
        scene.limit({(LimitName.QUEUED, ALL, ALL): PLACES, (LimitName.SUBMIT_RATE, EACH, ALL): 100})
        self.scene = scene
        self.buckets = SlowBuckets()
        self._gate = Gate(Rates(scene, self.buckets), scene.saturation, scene.measures)

    async def enter(self) -> Passage | str:
        now = self.scene.clock.now()
        try:
            return await self._gate.enter(OPERATION, Admitted(b"{}", now, now, None, 5, "c", None, None), "acme")
        except Refused as refused:
            return refused.code

    async def crowd(self, count: int) -> "list[asyncio.Task[Passage | str]]":
        """As many at once, all of whom have been looked at."""
        coming = [asyncio.create_task(self.enter()) for _ in range(count)]
        await asyncio.sleep(0)
        return coming


@pytest.fixture
async def door() -> Door:
    scene = Scene()
    await scene.measure()
    return Door(scene)


async def test_no_more_wait_for_tokens_than_there_are_places(door: Door) -> None:
    coming = await door.crowd(PLACES + 5)
    door.buckets.answer.set_result(True)
    came = await asyncio.gather(*coming)
    assert [one for one in came if isinstance(one, str)] == ["saturated"] * 5
    assert door.scene.measures.since(ALL) == PLACES


async def test_who_gets_no_token_gives_its_place_back(door: Door) -> None:
    coming = await door.crowd(PLACES)
    door.buckets.answer.set_result(False)
    assert await asyncio.gather(*coming) == ["rate-limited"] * PLACES
    assert (door.scene.measures.since(ALL), door.buckets.given_back) == (0, 0)


async def test_who_leaves_while_it_waits_gives_its_place_back(door: Door) -> None:
    coming = await door.crowd(PLACES)
    for one in coming:
        one.cancel()
    await asyncio.gather(*coming, return_exceptions=True)
    assert door.scene.measures.since(ALL) == 0


async def test_what_was_taken_for_nothing_is_given_back_once(door: Door) -> None:
    (coming,) = await door.crowd(1)
    door.buckets.answer.set_result(True)
    passage = await coming
    assert isinstance(passage, Passage)
    passage.settle(is_accepted=False)
    assert (door.scene.measures.since(ALL), door.buckets.given_back) == (0, 1)
