"""Rescue: attempts whose worker went silent are taken back."""

from collections.abc import Callable

from coatcheck.core.policy import Policies
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.contract import UpkeepStore

_log = get_logger(__name__)


class RescueSweep:
    """Settles attempts as lost once their lease ran out, and says so: their tenants may start others."""

    name = "rescue"

    def __init__(
        self,
        store: UpkeepStore,
        policies: Policies,
        metrics: Metrics,
        clock: Clock,
        on_rescued: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._policies = policies
        self._metrics = metrics
        self._clock = clock
        self._on_rescued = on_rescued

    async def run_once(self, limit: int) -> int:
        """Rescue up to `limit` attempts. Returns how many; raises StoreUnavailable."""
        count = await self._store.rescue_leases(self._policies, self._clock.now(), limit)
        if count:
            self._metrics.count("rescued", count)
            _log.warning("attempts_rescued", count=count)
            self._on_rescued()
        return count
