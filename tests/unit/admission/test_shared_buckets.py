"""Buckets shared by many processes on a real Valkey: one limit for all of them, and no stall when it is away."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coatcheck.admission.buckets import Draw, LocalBuckets
from coatcheck.admission.shared_buckets import Ask, BucketsAway, SharedBuckets, Told
from coatcheck.admission.valkey import Valkey
from coatcheck.core.bucket import bucket_size
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until_async
from harness.valkey_server import PASSWORD, ValkeyServer

SLOW = 0.001


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server of this test's own, running."""
    server = ValkeyServer(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def draw(tenant: str, burst: float, rate: float = SLOW) -> Draw:
    return Draw(("submit_rate", tenant, "reports"), bucket_size(rate, burst))


@asynccontextmanager
async def process_of(valkey: ValkeyServer, metrics: Metrics | None = None) -> AsyncIterator[SharedBuckets]:
    """What one process of the fleet has."""
    buckets = SharedBuckets(Valkey(valkey.url, "shop"), LocalBuckets(SystemClock()), metrics or Metrics())
    buckets.start()
    try:
        yield buckets
    finally:
        await buckets.stop()


async def granted(buckets: SharedBuckets, draws: Sequence[Draw], times: int) -> int:
    return sum(await asyncio.gather(*(buckets.take(draws) for _ in range(times))))


async def test_processes_share_one_bucket_to_the_last_token(valkey: ValkeyServer) -> None:
    async with process_of(valkey) as one, process_of(valkey) as other, process_of(valkey) as third:
        shared = [draw("acme", 100), draw("", 500)]
        shares = await asyncio.gather(*(granted(process, shared, 80) for process in (one, other, third)))
        assert sum(shares) == 100
        assert await granted(other, [draw("", 500)], 500) == 400
        assert not await one.take(shared)
        assert one.missing(shared)[0] == pytest.approx(100, abs=1)


async def test_tokens_come_in_at_the_rate_on_the_server_s_clock(valkey: ValkeyServer) -> None:
    async with process_of(valkey) as buckets:
        fast = [draw("acme", 20, rate=2_000)]
        taken, began_s = 0, asyncio.get_running_loop().time()
        while taken < 200:
            taken += await granted(buckets, fast, 40)
        took_s = asyncio.get_running_loop().time() - began_s
        assert taken <= 20 + 2_000 * took_s + 1


async def test_all_buckets_or_none(valkey: ValkeyServer) -> None:
    async with process_of(valkey) as buckets:
        assert await granted(buckets, [draw("acme", 50), draw("", 3)], 10) == 3
        assert await granted(buckets, [draw("acme", 50)], 60) == 47


async def test_what_is_given_back_can_be_taken_by_another_process(valkey: ValkeyServer) -> None:
    async with process_of(valkey) as one, process_of(valkey) as other:
        only = [draw("acme", 1)]
        assert await one.take(only)
        assert not await other.take(only)
        one.give_back(only)
        assert not await one.take([draw("acme", 0, rate=0)])
        assert await other.take(only)


async def test_a_change_of_the_burst_keeps_what_is_missing(valkey: ValkeyServer) -> None:
    async with process_of(valkey) as buckets:
        assert await granted(buckets, [draw("acme", 10)], 10) == 10
        assert await granted(buckets, [draw("acme", 15)], 10) == 5
        assert await granted(buckets, [draw("acme", 2)], 10) == 0


async def test_a_server_that_is_killed_and_comes_back(valkey: ValkeyServer, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    caplog.set_level(logging.INFO)
    async with process_of(valkey, metrics) as buckets:
        limited = [draw("acme", 10)]
        assert await granted(buckets, limited, 4) == 4
        valkey.kill()
        # The process goes on from what it knew: six tokens are left, and nobody waits for the server.
        assert await granted(buckets, limited, 40) == 6
        assert metrics.read("shared_limits_away") == 1
        assert metrics.read("limits_decided_locally") == 40
        valkey.start()
        await wait_until_async(lambda: metrics.read("shared_limits_away") == 0, "the server to be used again", 20)
        assert await granted(buckets, limited, 40) == 10
        assert metrics.read("limits_decided_locally") == 40
    told = [message for message in caplog.messages if "work=shared-limits" in message]
    assert [message.split(" ")[0] for message in told] == ["interrupted", "recovered"]
    assert PASSWORD not in caplog.text


async def test_a_server_that_hangs_costs_one_short_wait(valkey: ValkeyServer) -> None:
    metrics = Metrics()
    async with process_of(valkey, metrics) as buckets:
        limited = [draw("acme", 1_000)]
        assert await buckets.take(limited)
        valkey.freeze()
        async with asyncio.timeout(10):
            assert await granted(buckets, limited, 200) == 200
            assert await granted(buckets, limited, 200) == 200
        valkey.thaw()
        await wait_until_async(lambda: metrics.read("shared_limits_away") == 0, "the server to be used again", 20)


async def test_a_server_that_was_never_there(valkey: ValkeyServer) -> None:
    valkey.kill()
    async with process_of(valkey) as buckets:
        assert await granted(buckets, [draw("acme", 5)], 9) == 5


class Counting:
    """Plays the server, and counts the calls."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.is_away = False

    async def take(self, asks: Sequence[Ask]) -> Sequence[Told]:
        self.calls.append(len(asks))
        await asyncio.sleep(0)
        if self.is_away:
            raise BucketsAway("gone")
        return [Told(max(ask.wanted, 0), [0.0] * len(ask.draws)) for ask in asks]

    async def close(self) -> None:
        return None


async def test_the_requests_of_one_turn_make_one_call() -> None:
    server = Counting()
    buckets = SharedBuckets(server, LocalBuckets(SystemClock()), Metrics())
    await asyncio.gather(*(granted(buckets, [draw(f"tenant-{number}", 9)], 50) for number in range(3)))
    assert server.calls == [3]
    await buckets.stop()


async def test_a_client_that_leaves_while_the_call_is_on_its_way_disturbs_nobody() -> None:
    buckets = SharedBuckets(Counting(), LocalBuckets(SystemClock()), Metrics())
    leaving, staying = (asyncio.ensure_future(buckets.take([draw("acme", 9)])) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying
    await buckets.stop()
