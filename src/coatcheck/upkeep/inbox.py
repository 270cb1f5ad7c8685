"""The inbox: jobs that callers committed with their own transactions are moved on into the queue."""

from coatcheck.core.policy import Policies
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.inbox import InboxStore

_log = get_logger(__name__)


class InboxSweep:
    """Promotes what is committed. Readers find these jobs whether or not they are promoted yet."""

    name = "inbox"

    def __init__(self, store: InboxStore, policies: Policies, metrics: Metrics, clock: Clock) -> None:
        self._store = store
        self._policies = policies
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Promote up to `limit` jobs. Returns how many; raises StoreUnavailable."""
        count = await self._store.promote_inbox(self._policies, self._clock.now(), limit)
        if count:
            self._metrics.count("inbox_promoted", count)
            _log.debug("inbox_promoted", count=count)
        return count
