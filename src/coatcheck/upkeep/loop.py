"""The loop of upkeep: every sweep in its own rounds, so that one that fails or has much to do delays no other.

Sweeps are bounded and safe to run in several processes at once; rounds are jittered and go on at once while a batch
was full.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from coatcheck.core import limits
from coatcheck.core.policy import Policies
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.observe.metrics import Metrics
from coatcheck.observe.rounds import Rounds, jittered
from coatcheck.store.clock import Clock
from coatcheck.store.contract import Store
from coatcheck.store.inbox import InboxStore
from coatcheck.store.records import Prunable, WakeUp, WakeUpKind
from coatcheck.upkeep.deadlines import DueSweep, OverdueSweep
from coatcheck.upkeep.gauges import InboxGauges, QueueGauges, RevocationGauges
from coatcheck.upkeep.inbox import InboxSweep
from coatcheck.upkeep.rescue import RescueSweep
from coatcheck.upkeep.retention import RetentionSweep
from coatcheck.upkeep.revocations import RevocationSweep
from coatcheck.upkeep.turns import TurnSweep

_GAUGES_EVERY_S = 3.0
_TURNS_EVERY_S = 1.0
_RETENTION_TIMES_INTERVAL = 5
_LOOKS_IN_A_LEASE = 5
_SOONEST_S = 0.002


class Sweep(Protocol):
    """One bounded piece of upkeep."""

    @property
    def name(self) -> str:
        """What the log calls it."""
        ...

    async def run_once(self, limit: int) -> int:
        """Touch at most `limit` rows; returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class UpkeepParts:
    """What upkeep works with.

    `interval_s` is the time between two looks at lost leases, deadlines and due jobs; lost leases are looked at
    several times within `lease_s` in any case, because a store only trusts what it has seen stand still. The inbox,
    where the store has one, is looked into every `inbox_interval_s`. `terms`: those that hold for tenants now.
    """

    store: Store
    policies: Policies
    metrics: Metrics
    clock: Clock
    interval_s: float
    lease_s: float
    inbox_interval_s: float = 0.1
    terms: Callable[[], Terms] = lambda: ANY_TERMS
    batch_max: int = limits.SWEEP_BATCH_MAX


class Upkeep:
    """All sweeps of one process."""

    def __init__(self, parts: UpkeepParts) -> None:
        self._parts = parts
        self._due = DueSweep(parts.store, parts.clock)
        self._due_rounds = Rounds(self._due.name, self._due_turn)
        self._turn_rounds = self._rounds_of(TurnSweep(parts.store, parts.terms), _TURNS_EVERY_S)
        others = [self._rounds_of(sweep, every_s) for sweep, every_s in _sweeps(parts, self.look_at_turns)]
        self._rounds = [self._due_rounds, self._turn_rounds, *others]
        self._unlisten: Callable[[], None] | None = None

    def look_at_turns(self) -> None:
        """Something happened by which jobs of held turns may be able to start."""
        self._turn_rounds.wake()

    def start(self) -> None:
        """Begin all rounds."""
        self._unlisten = self._parts.store.listen(self._hear)
        for rounds in self._rounds:
            rounds.start()

    async def stop(self) -> None:
        """End all rounds, each after the sweep it is in."""
        if self._unlisten is not None:
            self._unlisten()
        await asyncio.gather(*(rounds.stop() for rounds in self._rounds))

    def _rounds_of(self, sweep: Sweep, every_s: float) -> Rounds:
        async def turn() -> float:
            count = await sweep.run_once(self._parts.batch_max)
            return 0.0 if count >= self._parts.batch_max else jittered(every_s)

        return Rounds(sweep.name, turn)

    async def _due_turn(self) -> float:
        count = await self._due.run_once(self._parts.batch_max)
        if count >= self._parts.batch_max:
            return 0.0
        wait_s = jittered(self._parts.interval_s)
        if self._due.next_due_at is not None:
            until_due_s = (self._due.next_due_at - self._parts.clock.now()) / 1000
            wait_s = min(wait_s, max(until_due_s, _SOONEST_S))
        return wait_s

    def _hear(self, wake_up: WakeUp) -> None:
        if wake_up.kind is WakeUpKind.SCHEDULED:
            self._due_rounds.wake()


def _sweeps(parts: UpkeepParts, on_rescued: Callable[[], None]) -> Sequence[tuple[Sweep, float]]:
    store, policies, metrics, clock = parts.store, parts.policies, parts.metrics, parts.clock
    retention_s = parts.interval_s * _RETENTION_TIMES_INTERVAL
    sweeps: list[tuple[Sweep, float]] = []
    if isinstance(store, InboxStore):
        sweeps.append((InboxSweep(store, policies, parts.terms, metrics, clock), parts.inbox_interval_s))
        sweeps.append((InboxGauges(store, metrics, clock), _GAUGES_EVERY_S))
    return [
        *sweeps,
        (
            RescueSweep(store, policies, metrics, clock, on_rescued),
            min(parts.interval_s, parts.lease_s / _LOOKS_IN_A_LEASE),
        ),
        (OverdueSweep(store, policies, metrics, clock), parts.interval_s),
        (RevocationSweep(store, policies, metrics, clock), parts.interval_s),
        (QueueGauges(store, frozenset(policies.by_operation), metrics, clock), _GAUGES_EVERY_S),
        (RevocationGauges(store, metrics), _GAUGES_EVERY_S),
        *((RetentionSweep(what, store, metrics, clock), retention_s) for what in Prunable),
    ]
