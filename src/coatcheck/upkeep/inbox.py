"""The inbox: jobs that callers committed with their own transactions are moved on into the queue."""

from collections.abc import Callable

from coatcheck.core.policy import Policies
from coatcheck.core.terms import Terms
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.inbox import InboxStore

_log = get_logger(__name__)


class InboxSweep:
    """Promotes what is committed, under the terms of that moment. Readers find these jobs, promoted yet or not."""

    name = "inbox"

    def __init__(
        self, store: InboxStore, policies: Policies, terms: Callable[[], Terms], metrics: Metrics, clock: Clock
    ) -> None:
        self._store = store
        self._policies = policies
        self._terms = terms
        self._metrics = metrics
        self._clock = clock

    async def run_once(self, limit: int) -> int:
        """Promote up to `limit` jobs. Returns how many; raises StoreUnavailable."""
        count = await self._store.promote_inbox(self._policies, self._terms(), self._clock.now(), limit)
        if count:
            self._metrics.count("inbox_promoted", count)
            _log.debug("inbox_promoted", count=count)
        return count
