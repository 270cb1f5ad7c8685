"""The relay: from the outbox to a channel, at least once, each job's events in their order.

A channel that is away holds up nothing but itself: entries stay in the outbox and are tried again. An entry that the
channel keeps refusing is stepped over, with the later entries of its job, and stays in the outbox: it is logged,
counted in `outbox_stuck` and tried again now and then. Only when HELD_MAX entries are refused like that does the
relay wait for somebody to look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coatcheck.completion.events.channel import Channel, ChannelUnavailable
from coatcheck.core import limits
from coatcheck.core.backoff import Backoff
from coatcheck.core.events import OutboxEntry
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.observe.rounds import Rounds, jittered
from coatcheck.store.clock import Clock
from coatcheck.store.contract import Store
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import WakeUp, WakeUpKind

HELD_MAX = 1_000
TRIES_BEFORE_STUCK = 5

_log = get_logger(__name__)
_POLL_S = 1.0
_HELD_BACKOFF = Backoff(first_s=0.5, factor=2.0, max_s=60.0)


@dataclass(frozen=True, slots=True)
class RelayParts:
    """What the relay works with."""

    store: Store
    channel: Channel
    metrics: Metrics
    clock: Clock
    fault_point: FaultPoint = no_fault
    batch_max: int = limits.OUTBOX_BATCH_MAX


@dataclass(frozen=True, slots=True)
class _Held:
    """An entry its channel refused: how often, and when (monotonic seconds) it is tried again."""

    tries: int
    again_at_s: float


class Relay:
    """Empties the outbox in rounds of its own."""

    def __init__(self, parts: RelayParts) -> None:
        self._parts = parts
        self._held: dict[int, _Held] = {}
        self._rounds = Rounds("relay", self._turn, outages=(StoreUnavailable, ChannelUnavailable))
        self._unlisten: Callable[[], None] | None = None

    async def start(self) -> None:
        """Open the channel and begin.

        Raises:
            ChannelRefused: the channel cannot be used.
        """
        await self._parts.channel.open()
        self._unlisten = self._parts.store.listen(self._hear)
        self._rounds.start()

    async def stop(self) -> None:
        """End after the batch that is being told."""
        if self._unlisten is not None:
            self._unlisten()
        await self._rounds.stop()
        await self._parts.channel.close()

    async def run_once(self, limit: int) -> int:
        """Tell up to `limit` entries and forget them. Returns how many.

        Raises:
            ChannelUnavailable, StoreUnavailable: nothing more can be told now; nothing is lost.
        """
        entries = await self._parts.store.read_outbox(limit + len(self._held))
        self._forget_gone(entries)
        batch = self._tellable(entries)[:limit]
        told: list[OutboxEntry] = []
        try:
            doubtful_jobs = {entry.job_id for entry in batch if entry.seq in self._held}
            await self._tell([entry for entry in batch if entry.job_id not in doubtful_jobs], told)
            await self._tell_singly([entry for entry in batch if entry.job_id in doubtful_jobs], told)
        finally:
            await self._mark(told)
        return len(told)

    async def _turn(self) -> float:
        count = await self.run_once(self._parts.batch_max)
        return 0.0 if count >= self._parts.batch_max else jittered(_POLL_S)

    def _hear(self, wake_up: WakeUp) -> None:
        if wake_up.kind is WakeUpKind.OUTBOX:
            self._rounds.wake()

    def _tellable(self, entries: Sequence[OutboxEntry]) -> Sequence[OutboxEntry]:
        """The entries whose turn it is: a refused one, and what its job says after it, only when its wait is over."""
        now_s = self._parts.clock.monotonic_s()
        waiting_jobs: set[str] = set()
        tellable = []
        for entry in entries:
            held = self._held.get(entry.seq)
            if held is not None and held.again_at_s > now_s:
                waiting_jobs.add(entry.job_id)
            if entry.job_id not in waiting_jobs:
                tellable.append(entry)
        return tellable

    async def _tell(self, batch: Sequence[OutboxEntry], told: list[OutboxEntry]) -> None:
        """Tell a batch; when it is refused, tell its entries one by one to find out which."""
        if not batch:
            return
        try:
            await self._parts.channel.tell(batch)
        except ChannelUnavailable:
            self._parts.metrics.count("outbox_failures")
            raise
        except Exception:
            # Whatever one entry causes must not stop the others.
            await self._tell_singly(batch, told)
        else:
            told.extend(batch)

    async def _tell_singly(self, batch: Sequence[OutboxEntry], told: list[OutboxEntry]) -> None:
        refused_jobs: set[str] = set()
        for entry in batch:
            if entry.job_id in refused_jobs:
                continue
            try:
                await self._parts.channel.tell([entry])
            except ChannelUnavailable:
                self._parts.metrics.count("outbox_failures")
                raise
            except Exception as error:
                refused_jobs.add(entry.job_id)
                self._hold(entry, error)
            else:
                told.append(entry)

    def _hold(self, entry: OutboxEntry, error: Exception) -> None:
        self._parts.metrics.count("outbox_failures")
        before = self._held.get(entry.seq)
        if before is None and len(self._held) >= HELD_MAX:
            raise ChannelUnavailable(f"{HELD_MAX} entries are refused; the relay waits until the channel takes them")
        tries = 1 if before is None else before.tries + 1
        wait_s = _HELD_BACKOFF.ceiling_s(tries)
        self._held[entry.seq] = _Held(tries, self._parts.clock.monotonic_s() + wait_s)
        if tries == TRIES_BEFORE_STUCK:
            _log.error("event_stuck", job=entry.job_id, type=entry.type, tries=tries, exc_info=error)
        self._count_stuck()

    def _forget_gone(self, entries: Sequence[OutboxEntry]) -> None:
        """Let go of refused entries that left the outbox. An empty answer may only mean another process's turn."""
        if entries and self._held:
            seqs = {entry.seq for entry in entries}
            self._held = {seq: held for seq, held in self._held.items() if seq in seqs}
            self._count_stuck()

    async def _mark(self, told: Sequence[OutboxEntry]) -> None:
        if not told:
            return
        self._parts.fault_point("outbox-sent-before-mark")
        await self._parts.store.remove_relayed([entry.seq for entry in told])
        self._parts.metrics.count("outbox_relayed", len(told))
        for entry in told:
            self._held.pop(entry.seq, None)
        self._count_stuck()

    def _count_stuck(self) -> None:
        stuck = sum(held.tries >= TRIES_BEFORE_STUCK for held in self._held.values())
        self._parts.metrics.set("outbox_stuck", stuck)
