"""A store that is away when a test says so, in front of a real one."""

from collections import Counter
from collections.abc import Callable, Sequence

from coatcheck.core.costs import JobCost, SpendTotals
from coatcheck.core.job import InstantMs
from coatcheck.execution.parts import WorkerStore
from coatcheck.store.costs import SpendingRow
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Beat, BeatAnswer, ClaimRequest, Claims, Finished, Finishing, Lease, Spending, WakeUp


class FlakyStore(WorkerStore):
    """Refuses the verbs in `refusals` as often as they say there, and counts all calls."""

    def __init__(self, store: WorkerStore) -> None:
        self._store = store
        self.refusals: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        self._pass("claim_ready")
        return await self._store.claim_ready(request, now)

    async def extend_leases(self, beats: Sequence[Beat], now: InstantMs) -> Sequence[BeatAnswer]:
        self._pass("extend_leases")
        return await self._store.extend_leases(beats, now)

    async def finish_attempt(self, finishing: Finishing, now: InstantMs) -> Finished:
        self._pass("finish_attempt")
        return await self._store.finish_attempt(finishing, now)

    async def record_effect(self, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes:
        self._pass("record_effect")
        return await self._store.record_effect(lease, name, value, now)

    async def find_effect(self, lease: Lease, name: str) -> bytes | None:
        self._pass("find_effect")
        return await self._store.find_effect(lease, name)

    async def spend(self, spending: Spending) -> SpendTotals:
        self._pass("spend")
        return await self._store.spend(spending)

    async def list_spending(self, tenant: str, limit: int, before: SpendingRow | None = None) -> Sequence[SpendingRow]:
        self._pass("list_spending")
        return await self._store.list_spending(tenant, limit, before)

    async def list_job_costs(self, job_id: str) -> Sequence[JobCost]:
        self._pass("list_job_costs")
        return await self._store.list_job_costs(job_id)

    def listen(self, callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        return self._store.listen(callback)

    def _pass(self, verb: str) -> None:
        self.calls[verb] += 1
        if self.refusals[verb] > 0:
            self.refusals[verb] -= 1
            raise StoreUnavailable("the disk is full")
