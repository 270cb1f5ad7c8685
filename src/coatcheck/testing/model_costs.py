"""What work costs in the reference model: by job, and by tenant and window, told in its own words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.costs import SpendTotals, Window
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.records import Spending


@dataclass(slots=True)
class _Sum:
    """What was charged and what was spent; `last` is the attempt and the number of the last spend counted."""

    charged: int = 0
    spent: int = 0
    last: tuple[int, int] = (0, 0)


class _Purse(NamedTuple):
    """Where a tenant's spending in a window is counted."""

    tenant: str
    kind: str
    window: Window
    operation: str


@dataclass(slots=True)
class ModelCosts:
    """Every cost that a store should know."""

    jobs: dict[tuple[str, str], _Sum] = field(default_factory=dict)
    purses: dict[_Purse, _Sum] = field(default_factory=dict)

    def spend(self, job: JobRecord, spending: Spending) -> SpendTotals:
        """Count what an attempt of the job spends, whose lease holds."""
        own = self.jobs.setdefault((job.id, spending.kind), _Sum())
        number = (spending.lease.attempt, spending.number)
        if number > own.last:
            own.last = number
            own.spent += spending.units
            purse = _Purse(job.tenant, spending.kind, spending.window, job.operation)
            self.purses.setdefault(purse, _Sum()).spent += spending.units
        of_tenant = self._total(
            lambda purse: (purse.tenant, purse.kind, purse.window) == (job.tenant, spending.kind, spending.window)
        )
        in_operation = self._total(
            lambda purse: purse == _Purse(job.tenant, spending.kind, spending.window, job.operation)
        )
        return SpendTotals(own.spent, in_operation, of_tenant)

    def forget_job(self, job_id: str) -> None:
        """A job is gone; what it cost its tenant stays."""
        for named in [named for named in self.jobs if named[0] == job_id]:
            del self.jobs[named]

    def prune(self, now: InstantMs) -> int:
        """Windows that began too long ago are gone."""
        latest = now - limits.SPENDING_KEPT_S * 1000
        gone = [purse for purse in self.purses if purse.window.began_at <= latest]
        for purse in gone:
            del self.purses[purse]
        return len(gone)

    def _total(self, is_meant: Callable[[_Purse], bool]) -> int:
        return sum(one.charged + one.spent for purse, one in self.purses.items() if is_meant(purse))
