"""How long a job will wait: from who waits, how many jobs run at once and how long they take."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from typing import Final

ONE_SIDED_95: Final = 1.645
MEASURE_AGE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a queue goes: jobs that run at once, and the mean and deviation of `runs` runs in seconds.

        wait  = ahead * run_s / slots
        error = 1.645 * spread_s / slots * sqrt(ahead + ahead * ahead / runs)
        bound = wait + error + the age a measure may have

    The runs ahead vary, and so does a mean of so many runs; 95 of 100 jobs start before the bound, if all else stays.
    """

    slots: float
    run_s: float
    spread_s: float
    runs: int

    def wait_s(self, ahead: float) -> float:
        """How long it takes until this many jobs before it have been started."""
        return ahead * self.run_s / self.slots

    def most_s(self, ahead: float) -> float:
        """A wait that is exceeded in one of twenty cases."""
        error_s = ONE_SIDED_95 * self.spread_s / self.slots * sqrt(ahead + ahead * ahead / self.runs)
        return self.wait_s(ahead) + error_s

    def bound_s(self, ahead: float) -> float:
        """The same of one who asks while the measure may be this old."""
        return self.most_s(ahead) + MEASURE_AGE_S


class Lines:
    """How many jobs each tenant has waiting, made so that a question costs little however many tenants there are.

    Tenants take turns, so a job that has `own` jobs of its tenant before it also lets pass, of each other tenant, as
    many as that one's share allows meanwhile, and no more than it has waiting:

        ahead = own + sum over others of min(waiting, (own + 1) * weight / own weight)

    Args:
        waiting: ready jobs by tenant.
        weight: of a tenant.
    """

    def __init__(self, waiting: Mapping[str, int], weight: Callable[[str], float]) -> None:
        self._waiting = waiting
        self._weight = weight
        # A tenant's line is over when everybody had this many turns for each unit of weight.
        by_end = sorted((jobs / weight(tenant), jobs, weight(tenant)) for tenant, jobs in waiting.items())
        self._ends = [end for end, _, _ in by_end]
        self._jobs_over = [0, *accumulate(jobs for _, jobs, _ in by_end)]
        self._weights_over = [0.0, *accumulate(weight for _, _, weight in by_end)]

    def of(self, tenant: str) -> int:
        """The tenant's waiting jobs."""
        return self._waiting.get(tenant, 0)

    def ahead(self, tenant: str, own: float) -> float:
        """All jobs that go before one that has `own` of its tenant's before it."""
        weight = self._weight(tenant)
        turns = (own + 1) / weight
        return own + self._taken_by_all(turns) - min(self.of(tenant), turns * weight)

    def _taken_by_all(self, turns: float) -> float:
        over = bisect_left(self._ends, turns)
        return self._jobs_over[over] + turns * (self._weights_over[-1] - self._weights_over[over])
