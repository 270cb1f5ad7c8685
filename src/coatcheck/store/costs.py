"""What work has cost, for those who look after tenants, and for the metrics."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from coatcheck.core.costs import JobCost, Millionths, Window


class SpendingRow(Struct, frozen=True):
    """What a tenant's jobs of one operation cost in one window of a kind."""

    kind: str
    window: Window
    operation: str
    charged: Millionths
    spent: Millionths


class CostStore(Protocol):
    """Any verb may raise StoreUnavailable."""

    async def list_spending(self, tenant: str, limit: int, before: SpendingRow | None = None) -> Sequence[SpendingRow]:
        """What a tenant's jobs cost, the newest windows first; those that follow on `before`."""
        ...

    async def list_job_costs(self, job_id: str) -> Sequence[JobCost]:
        """What a job cost, by kind."""
        ...
