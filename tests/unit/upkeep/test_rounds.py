"""Rounds: work goes on through outages and faults, and both are told once."""

import asyncio

import pytest

from coatcheck.observe.rounds import Rounds, jittered
from coatcheck.store.errors import StoreUnavailable
from coatcheck.testing.waiting import wait_until_async

NEVER_S = 3600.0


class Work:
    """A turn that fails as often as it is told to."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.turns = 0

    async def __call__(self) -> float:
        self.turns += 1
        if self.errors:
            raise self.errors.pop(0)
        return NEVER_S


async def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(*(StoreUnavailable("the disk is full") for _ in range(3)))
    rounds = Rounds("sweep", work)
    with caplog.at_level("INFO"):
        waits = [await rounds.run_once() for _ in range(4)]
    assert [message.split(" ")[0] for message in caplog.messages] == ["interrupted", "recovered"]
    assert "the disk is full" in caplog.messages[0]
    assert caplog.records[0].exc_info is None
    assert 0 < waits[0] < waits[2] < 5
    assert waits[3] == NEVER_S


async def test_a_fault_of_ours_is_told_with_its_traceback_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds("sweep", Work(ZeroDivisionError()))
    with caplog.at_level("INFO"):
        await rounds.run_once()
        await rounds.run_once()
    assert caplog.records[0].levelname == "ERROR"
    assert caplog.records[0].exc_info is not None


async def test_the_wait_grows_and_stays_bounded_and_random() -> None:
    rounds = Rounds("sweep", Work(*(StoreUnavailable() for _ in range(50))), jitter=lambda: 1.0)
    waits = [await rounds.run_once() for _ in range(50)]
    assert waits[:4] == [0.2, 0.4, 0.8, 1.6]
    assert waits[-1] == 5.0
    assert jittered(10, lambda: 0.0) == 10
    assert jittered(10, lambda: 0.5) == 9


async def test_a_wake_up_begins_the_next_turn_at_once() -> None:
    work = Work()
    rounds = Rounds("sweep", work)
    rounds.start()
    await wait_until_async(lambda: work.turns == 1, "the first turn")
    rounds.wake()
    await wait_until_async(lambda: work.turns == 2, "the turn after the wake-up")
    await rounds.stop()


async def test_wake_ups_do_not_hurry_a_failing_turn() -> None:
    work = Work(*(StoreUnavailable() for _ in range(1000)))
    rounds = Rounds("sweep", work, jitter=lambda: 1.0)
    rounds.start()
    await wait_until_async(lambda: work.turns == 1, "the first turn")
    for _ in range(100):
        rounds.wake()
        await asyncio.sleep(0)
    assert work.turns == 1
    await rounds.stop()


async def test_stop_lets_the_turn_come_to_its_end() -> None:
    begun, let_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def turn() -> float:
        begun.set()
        await let_go.wait()
        ended.set()
        return NEVER_S

    rounds = Rounds("sweep", turn)
    rounds.start()
    await begun.wait()
    stopping = asyncio.create_task(rounds.stop())
    await asyncio.sleep(0)
    let_go.set()
    await stopping
    assert ended.is_set()
