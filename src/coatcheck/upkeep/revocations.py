"""Revocations: what becomes of revoked tenants' jobs is carried out, in bounded steps."""

from typing import Final

from coatcheck.core import limits
from coatcheck.core.policy import Policies
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.revoking import RevokingStore

WATCHED_MS: Final = 24 * 3600 * 1000
WATCHED_EVERY_S: Final = 60.0

_log = get_logger(__name__)


class RevocationSweep:
    """Ends, asks to end and erases jobs as policies say.

    A tenant whose revocation is done is looked at now and then for another day: a process that was stopped in the
    midst of accepting a job may go on only then.
    """

    name = "revocations"

    def __init__(self, store: RevokingStore, policies: Policies, metrics: Metrics, clock: Clock) -> None:
        self._store = store
        self._policies = policies
        self._metrics = metrics
        self._clock = clock
        self._after = ""
        self._watched_s = float("-inf")

    async def run_once(self, limit: int) -> int:
        """Change about `limit` jobs. Returns how many; raises StoreUnavailable."""
        touched = 0
        names = await self._store.list_revoked(self._done_since(), self._after, limits.TENANTS_SWEPT_MAX)
        for name in names:
            step = await self._store.carry_out_revocation(name, self._policies, self._clock.now(), limit)
            for what, count in (("cancelled", step.cancelled), ("asked", step.asked), ("erased", step.erased)):
                if count:
                    self._metrics.count("revoked_jobs", count, what=what)
            if step.touched:
                counts = {"cancelled": step.cancelled, "asked": step.asked, "erased": step.erased}
                _log.info("revocation_carried_on", tenant=name, **counts)
            touched += step.touched
            self._after = name
            if touched >= limit:
                return touched
        if len(names) < limits.TENANTS_SWEPT_MAX:
            self._after = ""
        return touched

    def _done_since(self) -> int:
        """From when on revocations that are done are looked at as well: mostly never."""
        now_s = self._clock.monotonic_s()
        if not self._after and now_s - self._watched_s >= WATCHED_EVERY_S:
            self._watched_s = now_s
            return self._clock.now() - WATCHED_MS
        return limits.INSTANT_MS_MAX
