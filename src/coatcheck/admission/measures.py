"""What the queues are doing, measured in the background at most once a second while anybody asks.

What this process lets in counts at once: a measure is at most a second behind in what the other processes did, and
never in what this one did.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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


NOTHING: Final = Total()


class Measures:
    """The last measure of each queue, and what was let in since."""

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._queues: Mapping[str, QueueMeasure] = {}
        self._totals: Mapping[str, Total] = {}
        self._took_s = 0.0
        self._begun_s = self._known_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._since: Counter[tuple[str, str]] = Counter()
        self._since_begun: Counter[tuple[str, str]] | None = None
        self._on_their_way: Counter[tuple[str, str]] = Counter()
        self._watchers: list[Callable[[Mapping[str, QueueMeasure]], None]] = []

    def on_measured(self, callback: Callable[[Mapping[str, QueueMeasure]], None]) -> None:
        """Call `callback` with each new measure of all queues."""
        self._watchers.append(callback)

    def of(self, operation: str) -> QueueMeasure | None:
        """The last measure of an operation's queue; another one is begun if it is older than FRESH_S."""
        if self._clock.monotonic_s() - self._begun_s >= FRESH_S:
            self._begin()
        return self._queues.get(operation)

    def total(self, operation: str) -> Total:
        """The last measure of an operation in short, or of ALL of them together."""
        return self._totals.get(operation, NOTHING)

    @property
    def age_s(self) -> float:
        """How long ago the last measure was begun."""
        return self._clock.monotonic_s() - self._known_s

    @property
    def is_stale(self) -> bool:
        """Whether the last measure says nothing of now. Those that take long are old when they are known."""
        return self.age_s > STALE_S + 2 * self._took_s

    async def refreshed(self) -> None:
        """Return once the last measure is not stale, or cannot be had."""
        self.of(ALL)
        if self.is_stale:
            await self.measured()

    async def measured(self) -> None:
        """Return once the measure that is being taken, if one is, is known."""
        if self._reading is not None:
            await asyncio.shield(self._reading)

    def since(self, operation: str, tenant: str = ALL) -> int:
        """Jobs that this process let in and that the last measure does not count; of one tenant, or all."""
        return self._since[operation, tenant]

    def enter(self, operation: str, tenant: str) -> None:
        """A job is on its way into the store."""
        for key in ((operation, tenant), (operation, ALL), (ALL, ALL)):
            self._on_their_way[key] += 1
            self._since[key] += 1
            if self._since_begun is not None:
                self._since_begun[key] += 1

    def leave(self, operation: str, tenant: str, is_accepted: bool) -> None:
        """It is there, or it is not accepted."""
        for key in ((operation, tenant), (operation, ALL), (ALL, ALL)):
            self._on_their_way[key] -= 1
            if not self._on_their_way[key]:
                del self._on_their_way[key]
            if not is_accepted:
                self._since[key] -= 1
                if self._since_begun is not None:
                    self._since_begun[key] -= 1

    async def close(self) -> None:
        """Measure no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _begin(self) -> None:
        if self._reading is None or self._reading.done():
            self._begun_s = self._clock.monotonic_s()
            # What is on its way may be seen or not: it is counted, so that a limit is rather kept than passed.
            self._since_begun = self._on_their_way.copy()
            self._reading = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        begun_s = self._begun_s
        try:
            queues = await self._store.measure_queues(self._clock.now())
        except StoreError as error:
            self._since_begun = None
            _log.debug("queues_not_measured", reason=type(error).__name__)
            return
        self._queues = {queue.operation: queue for queue in queues}
        self._totals = {name: _total_of([queue]) for name, queue in self._queues.items()} | {ALL: _total_of(queues)}
        self._known_s = begun_s
        self._took_s = self._clock.monotonic_s() - begun_s
        if self._since_begun is not None:
            self._since, self._since_begun = self._since_begun, None
        for callback in self._watchers:
            callback(self._queues)


def _total_of(queues: Sequence[QueueMeasure]) -> Total:
    oldest = [queue.oldest_ready_at for queue in queues if queue.oldest_ready_at is not None]
    return Total(
        waiting=sum(queue.ready + queue.scheduled for queue in queues),
        oldest_ready_at=min(oldest, default=None),
        starts_per_s=sum(queue.running / queue.recent_run_s for queue in queues if queue.recent_run_s),
    )
