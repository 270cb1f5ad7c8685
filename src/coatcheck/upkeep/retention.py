"""Retention: results, jobs, tombstones and keys are removed, each when its own time is up."""

from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.contract import UpkeepStore
from coatcheck.store.records import Prunable

_log = get_logger(__name__)


class RetentionSweep:
    """Prunes one kind of trace. Readers see what expired as gone whether or not it is pruned yet."""

    def __init__(self, what: Prunable, store: UpkeepStore, metrics: Metrics, clock: Clock) -> None:
        self.name = f"retention-{what}"
        self._what = what
        self._store = store
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Prune up to `limit` rows. Returns how many; raises StoreUnavailable."""
        count = await self._store.prune_expired(self._what, self._clock.now(), limit)
        if count:
            self._metrics.count("pruned", count, what=self._what)
            _log.debug("pruned", what=self._what, count=count)
        return count
