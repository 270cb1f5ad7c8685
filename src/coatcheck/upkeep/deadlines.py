"""Deadlines: jobs become ready when their time comes, and end when it has passed."""

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.contract import UpkeepStore

_log = get_logger(__name__)


class DueSweep:
    """Makes jobs ready whose start time or backoff has come. `next_due_at` is when the next one is due."""

    name = "due"

    def __init__(self, store: UpkeepStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.next_due_at: InstantMs | None = None

    async def run_once(self, limit: int) -> int:
        """Promote up to `limit` jobs. Returns how many; raises StoreUnavailable."""
        promotion = await self._store.promote_due(self._clock.now(), limit)
        self.next_due_at = promotion.next_due_at
        return promotion.count


class OverdueSweep:
    """Ends waiting jobs whose deadline or queue limit passed, although no worker asks for work."""

    name = "overdue"

    def __init__(self, store: UpkeepStore, policies: Policies, metrics: Metrics, clock: Clock) -> None:
        self._store = store
        self._policies = policies
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Expire up to `limit` jobs. Returns how many; raises StoreUnavailable."""
        count = await self._store.expire_overdue(self._policies, self._clock.now(), limit)
        if count:
            self._metrics.count("expired", count)
            _log.warning("jobs_expired_waiting", count=count)
        return count
