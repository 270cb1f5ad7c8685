"""What work costs in the reference model: by job, and by tenant and window, told in its own words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.costs import ALL_OPERATIONS, Charge, OverBudget, SpendTotals, Window
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.records import Spending, Submission


@dataclass(slots=True)
class _Sum:
    """What was charged, for a job in which window, and what was spent; `last` is the attempt and the number of the last
    spend counted."""

    charged: int = 0
    spent: int = 0
    last: tuple[int, int] = (0, 0)
    window: Window | None = None


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

    def exceeded(self, tenant: str, charges: tuple[Charge, ...]) -> OverBudget | None:
        """The first of a tenant's charges for which a budget has too little left."""
        for charge in charges:
            for cap in charge.caps:
                used = self._used(tenant, charge, cap.operation)
                if used + charge.units > cap.most:
                    return OverBudget(charge, cap, used)
        return None

    def charge(self, submission: Submission) -> None:
        """A job was accepted."""
        for charge in submission.charges:
            own = self.jobs.setdefault((submission.job_id, charge.kind), _Sum())
            own.charged, own.window = charge.units, charge.window
            purse = _Purse(submission.tenant, charge.kind, charge.window, submission.operation)
            self.purses.setdefault(purse, _Sum()).charged += charge.units

    def give_back(self, job: JobRecord) -> None:
        """A job ends that never started."""
        for (job_id, kind), own in self.jobs.items():
            if job_id == job.id and own.window is not None:
                purse = self.purses.get(_Purse(job.tenant, kind, own.window, job.operation))
                if purse is not None:
                    purse.charged -= own.charged
                own.charged = 0

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

    def _used(self, tenant: str, charge: Charge, operation: str) -> int:
        named = (tenant, charge.kind, charge.window)
        return self._total(
            lambda purse: (
                (purse.tenant, purse.kind, purse.window) == named and operation in (ALL_OPERATIONS, purse.operation)
            )
        )

    def _total(self, is_meant: Callable[[_Purse], bool]) -> int:
        return sum(one.charged + one.spent for purse, one in self.purses.items() if is_meant(purse))
