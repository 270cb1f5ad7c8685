"""What the queues are doing: the part of the store that admission, estimates and gauges look at."""

from collections.abc import Sequence
from typing import Protocol

from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.records import QueueMeasure


class QueueStore(Protocol):
    """For whoever decides or tells how long work will wait. Any verb may raise StoreUnavailable."""

    async def measure_queues(self, now: InstantMs) -> Sequence[QueueMeasure]:
        """One measure for each operation that has, or recently had, work."""
        ...

    async def count_ahead(self, job: JobRecord, limit: int) -> int:
        """How many ready jobs of the job's tenant go before it in its operation; counts no further than `limit`."""
        ...
