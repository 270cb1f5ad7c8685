"""What the queues are doing, measured in the background at most once a second while anybody asks.

What this process lets in counts at once: a measure is at most a second behind in what the other processes did, and
never in what this one did.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from coatcheck.core.job import InstantMs
from coatcheck.core.quotas import ALL
from coatcheck.observe.logs import get_logger
from coatcheck.store.clock import Clock
from coatcheck.store.errors import StoreError
from coatcheck.store.queues import QueueStore
from coatcheck.store.records import QueueMeasure

FRESH_S: Final = 1.0
STALE_S: Final = 3.0

_log = get_logger("admission.measures")


class Total(NamedTuple):
    """What waits, ready or not; since when the oldest could start; and how many are started in a second."""

    waiting: int = 0
    oldest_ready_at: InstantMs | None = None
    starts_per_s: float = 0.0

    def is_older(self, most_s: float, now: InstantMs) -> bool:
        """Whether the oldest job has waited for more than `most_s` seconds. Under a limit of 0 nothing may wait."""
        return most_s <= 0 or (self.oldest_ready_at is not None and now - self.oldest_ready_at > most_s * 1000)


NOTHING: Final = Total()


class Tally:
    """Jobs of one scope that this process let in.

    `coming`: on their way into the store. `since`: not counted by the last measure. `since_begun`: not counted by the
    one that is being taken.
    """

    __slots__ = ("coming", "since", "since_begun")

    def __init__(self) -> None:
        self.coming = self.since = self.since_begun = 0

    def begin(self) -> None:
        """A measure is begun. What is on its way may be seen by it or not, and a limit is rather kept than passed."""
        self.since_begun = self.coming

    def end(self) -> None:
        """It is known."""
        self.since = self.since_begun


def enter(tallies: Iterable[Tally]) -> None:
    """A job is on its way into the store."""
    for tally in tallies:
        tally.coming += 1
        tally.since += 1
        tally.since_begun += 1


def leave(tallies: Iterable[Tally], is_accepted: bool) -> None:
    """It is there, or it is not accepted."""
    for tally in tallies:
        tally.coming -= 1
        if not is_accepted:
            tally.since -= 1
            tally.since_begun -= 1


class Measures:
    """The last measure of each queue, and what was let in since.

    `is_known`: whether, at the last `look`, the last measure said something of that moment. A measure that takes long
    is old when it is known.
    """

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._queues: Mapping[str, QueueMeasure] = {}
        self._totals: Mapping[str, Total] = {}
        self._took_s = 0.0
        self._begun_s = self._known_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._on_the_way: dict[tuple[str, str], tuple[Tally, Tally, Tally]] = {}
        self.is_known = False
        self._watchers: list[Callable[[Mapping[str, QueueMeasure]], None]] = []

    def on_measured(self, callback: Callable[[Mapping[str, QueueMeasure]], None]) -> None:
        """Call `callback` with each new measure of all queues."""
        self._watchers.append(callback)

    def look(self) -> bool:
        """Whether the last measure says something of now; another one is begun if it is older than FRESH_S."""
        now_s = self._clock.monotonic_s()
        if now_s - self._begun_s >= FRESH_S:
            self._begin(now_s)
        self.is_known = now_s - self._known_s <= STALE_S + 2 * self._took_s
        return self.is_known

    def of(self, operation: str) -> QueueMeasure | None:
        """The last measure of an operation's queue."""
        return self._queues.get(operation)

    def total(self, operation: str) -> Total:
        """The last measure of an operation in short, or of ALL of them together."""
        return self._totals.get(operation, NOTHING)

    @property
    def age_s(self) -> float:
        """How long ago the last measure was begun."""
        return self._clock.monotonic_s() - self._known_s

    async def measured(self) -> None:
        """Return once the measure that is being taken, if one is, is known or cannot be had."""
        if self._reading is not None:
            await asyncio.shield(self._reading)
        self.look()

    def since(self, operation: str, tenant: str = ALL) -> int:
        """Jobs that this process let in and that the last measure does not count; of one tenant, or all."""
        tally = self._tallies.get((operation, tenant))
        return 0 if tally is None else tally.since

    def tallies(self, operation: str, tenant: str) -> tuple[Tally, Tally, Tally]:
        """Where a tenant's job in an operation is to be counted: its own, the operation's and that of all."""
        key = (operation, tenant)
        found = self._on_the_way.get(key)
        if found is None:
            found = self._tally(operation, tenant), self._tally(operation, ALL), self._tally(ALL, ALL)
            self._on_the_way[key] = found
        return found

    async def close(self) -> None:
        """Measure no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _tally(self, operation: str, tenant: str) -> Tally:
        key = (operation, tenant)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally()
        return tally

    def _begin(self, now_s: float) -> None:
        if self._reading is None or self._reading.done():
            self._begun_s = now_s
            for tally in self._tallies.values():
                tally.begin()
            self._reading = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        begun_s = self._begun_s
        try:
            queues = await self._store.measure_queues(self._clock.now())
        except StoreError as error:
            _log.debug("queues_not_measured", reason=type(error).__name__)
            return
        self._queues = {queue.operation: queue for queue in queues}
        self._totals = {name: _total_of([queue]) for name, queue in self._queues.items()} | {ALL: _total_of(queues)}
        self._known_s = begun_s
        self._took_s = self._clock.monotonic_s() - begun_s
        for tally in self._tallies.values():
            tally.end()
        self._tallies = {key: tally for key, tally in self._tallies.items() if tally.coming or tally.since}
        self._on_the_way.clear()
        for callback in self._watchers:
            callback(self._queues)


def _total_of(queues: Sequence[QueueMeasure]) -> Total:
    oldest = [queue.oldest_ready_at for queue in queues if queue.oldest_ready_at is not None]
    return Total(
        waiting=sum(queue.ready + queue.scheduled for queue in queues),
        oldest_ready_at=min(oldest, default=None),
        starts_per_s=sum(queue.running / queue.recent_run_s for queue in queues if queue.recent_run_s),
    )
