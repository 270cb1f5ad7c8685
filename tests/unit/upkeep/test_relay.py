"""The relay: every event at least once, each job's in order, and nothing held up by what cannot be told."""

from collections.abc import Sequence

import pytest

from coatcheck.completion.events.channel import ChannelUnavailable, EntryRefused
from coatcheck.completion.relay import HELD_MAX, TRIES_BEFORE_STUCK, Relay, RelayParts
from coatcheck.core.events import OutboxEntry
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.observe.metrics import Metrics
from coatcheck.testing.conformance.world import DONE, World
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until_async


class Told:
    """A channel that remembers, and refuses the jobs it is told to, or everything."""

    def __init__(self) -> None:
        self.entries: list[OutboxEntry] = []
        self.refused_jobs: set[str] = set()
        self.is_away = False
        self.has_closed = False

    async def open(self) -> None: ...

    async def tell(self, entries: Sequence[OutboxEntry]) -> None:
        if self.is_away:
            raise ChannelUnavailable("the broker is away")
        for entry in entries:
            if entry.job_id in self.refused_jobs:
                raise EntryRefused("too large")
            self.entries.append(entry)

    async def close(self) -> None:
        self.has_closed = True

    def versions(self, job_id: str) -> list[int]:
        """The versions told of a job, each once, in the order of their first telling."""
        return list(dict.fromkeys(entry.version for entry in self.entries if entry.job_id == job_id))


def make(world: World, channel: Told, fault_point: FaultPoint = no_fault) -> tuple[Relay, Metrics]:
    metrics = Metrics()
    return Relay(RelayParts(world.store, channel, metrics, world.clock, fault_point)), metrics


async def outbox_rows(world: World) -> int:
    return (await world.factory.count_rows())["outbox"]


async def test_entries_are_told_in_order_and_forgotten(world: World) -> None:
    channel = Told()
    relay, metrics = make(world, channel)
    job = await world.finish(await world.start(), DONE)
    assert await relay.run_once(10) == 3
    assert channel.versions(job.id) == [1, 2, job.version]
    assert [entry.type for entry in channel.entries][-1] == "coatcheck.job.succeeded"
    assert await relay.run_once(10) == 0
    assert await outbox_rows(world) == 0
    assert metrics.read("outbox_relayed") == 3


async def test_a_batch_is_bounded(world: World) -> None:
    relay, _ = make(world, Told())
    for _ in range(5):
        await world.accept()
    assert [await relay.run_once(2) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_channel_that_is_away_loses_nothing(world: World) -> None:
    channel = Told()
    relay, metrics = make(world, channel)
    await world.accept()
    channel.is_away = True
    for _ in range(3):
        with pytest.raises(ChannelUnavailable):
            await relay.run_once(10)
    assert metrics.read("outbox_failures") == 3
    assert await outbox_rows(world) == 1
    channel.is_away = False
    assert await relay.run_once(10) == 1


async def test_a_crash_between_telling_and_marking_tells_again(world: World) -> None:
    channel, faults = Told(), FaultPoints()
    faults.raise_at("outbox-sent-before-mark", RuntimeError("killed"))
    relay, _ = make(world, channel, faults)
    await world.accept()
    with pytest.raises(RuntimeError, match="killed"):
        await relay.run_once(10)
    assert await relay.run_once(10) == 1
    first, second = channel.entries
    assert first == second


async def test_one_refused_entry_holds_up_only_its_own_job(world: World) -> None:
    channel = Told()
    relay, metrics = make(world, channel)
    poisoned, healthy = await world.accept(), await world.accept()
    channel.refused_jobs = {poisoned.id}
    await world.claim(slots=2)
    await relay.run_once(10)
    assert channel.versions(healthy.id) == [1, 2]
    assert channel.versions(poisoned.id) == []
    for _ in range(TRIES_BEFORE_STUCK):
        world.clock.advance(100)
        await relay.run_once(10)
    assert metrics.read("outbox_stuck") == 1
    assert await outbox_rows(world) == 2
    channel.refused_jobs.clear()
    world.clock.advance(100)
    await relay.run_once(10)
    assert channel.versions(poisoned.id) == [1, 2]
    assert metrics.read("outbox_stuck") == 0
    assert await outbox_rows(world) == 0


async def test_refused_entries_do_not_fill_the_batch(world: World) -> None:
    channel = Told()
    relay, _ = make(world, channel)
    channel.refused_jobs = {(await world.accept()).id for _ in range(4)}
    await relay.run_once(2)
    await relay.run_once(2)
    healthy = await world.accept()
    await relay.run_once(2)
    assert channel.versions(healthy.id) == [1]


async def test_a_stuck_event_is_told_to_the_operator_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    channel = Told()
    relay, _ = make(world, channel)
    job = await world.accept()
    channel.refused_jobs = {job.id}
    for _ in range(TRIES_BEFORE_STUCK * 2):
        await relay.run_once(10)
        world.clock.advance(100)
    stuck = [message for message in caplog.messages if message.startswith("event_stuck")]
    assert len(stuck) == 1
    assert job.id in stuck[0]


async def test_too_many_refused_entries_make_the_relay_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HELD_MAX == 1_000
    monkeypatch.setattr("coatcheck.completion.relay.HELD_MAX", 2)
    channel = Told()
    relay, _ = make(world, channel)
    channel.refused_jobs = {(await world.accept()).id for _ in range(3)}
    with pytest.raises(ChannelUnavailable, match="2 entries are refused"):
        await relay.run_once(10)
    assert await outbox_rows(world) == 3


async def test_hints_wake_it_and_stop_closes_the_channel(world: World) -> None:
    channel = Told()
    relay, _ = make(world, channel)
    await relay.start()
    job = await world.accept()
    await wait_until_async(lambda: channel.versions(job.id) == [1], "the event to be told")
    await relay.stop()
    assert channel.has_closed
