"""Gauges: what the queues, the inbox and revocations are doing, measured now and then for whoever watches."""

from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.inbox import InboxStore
from coatcheck.store.queues import QueueStore
from coatcheck.store.revoking import RevokingStore

_GAUGES = ("ready_jobs", "scheduled_jobs", "running_jobs", "oldest_ready_age_seconds")


class QueueGauges:
    """Sets the queue gauges of every operation; one that has no work any more stands at zero."""

    name = "gauges"

    def __init__(self, store: QueueStore, operations: frozenset[str], metrics: Metrics, clock: Clock) -> None:
        self._store = store
        self._operations = operations
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Measure all queues. Always 0: one measure is all there is to do; raises StoreUnavailable."""
        now = self._clock.now()
        measures = await self._store.measure_queues(now)
        seen = {measure.operation for measure in measures}
        for measure in measures:
            oldest = measure.oldest_ready_at
            age_s = 0.0 if oldest is None else max(0, now - oldest) / 1000
            values = (measure.ready, measure.scheduled, measure.running, age_s)
            for gauge, value in zip(_GAUGES, values, strict=True):
                self._metrics.set(gauge, value, operation=measure.operation)
        for operation in self._operations - seen:
            for gauge in _GAUGES:
                self._metrics.set(gauge, 0, operation=operation)
        self._operations |= seen
        return 0


class InboxGauges:
    """Sets the gauges of the inbox, where the store has one."""

    name = "inbox-gauges"

    def __init__(self, store: InboxStore, metrics: Metrics, clock: Clock) -> None:
        self._store = store
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Measure the inbox. Always 0; raises StoreUnavailable."""
        measure = await self._store.measure_inbox()
        oldest = measure.oldest_at
        self._metrics.set("inbox_jobs", measure.waiting)
        age_s = 0.0 if oldest is None else max(0, self._clock.now() - oldest) / 1000
        self._metrics.set("inbox_oldest_age_seconds", age_s)
        return 0


class RevocationGauges:
    """Sets the gauges of what is left to do for revoked tenants; nothing is left at zero."""

    name = "revocation-gauges"

    def __init__(self, store: RevokingStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    async def run_once(self, limit: int) -> int:
        """Measure what is left. Always 0; raises StoreUnavailable."""
        left = await self._store.measure_revocations()
        self._metrics.set("revocations_under_way", left.tenants)
        self._metrics.set("revocation_jobs_left", left.to_end, what="end")
        self._metrics.set("revocation_jobs_left", left.to_erase, what="erase")
        return 0
