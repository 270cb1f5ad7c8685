"""What work costs: units of a kind, charged when a job is accepted or spent while it runs, and the budgets for them.

Units are kept in millionths, as whole numbers: their sums are exact in whatever order they are made.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import InstantMs

Millionths: TypeAlias = int
Cost: TypeAlias = float | Callable[[Any], float]
"""What an operation declares: a number of units, or a function of the parsed request that returns one."""

ONE: Final = 1_000_000
DEFAULT_KIND: Final = "cost"
DEFAULT_WINDOW_S: Final = 24 * 3600.0
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class SpendTotals(NamedTuple):
    """What stands after a spend: the job's units of the kind, and its tenant's in the window, in the job's operation
    and over all operations; those of the tenant are 0 where no budget was named."""

    by_job: Millionths
    in_operation: Millionths = 0
    by_tenant: Millionths = 0


class Window(NamedTuple):
    """One window of a kind: when it began, and how long it is."""

    began_at: InstantMs
    length_ms: int

    @property
    def ends_at(self) -> InstantMs:
        return self.began_at + self.length_ms


def window_of(now: InstantMs, length_s: float) -> Window:
    """The window of this length that `now` lies in. Windows follow each other from 1970-01-01T00:00:00Z on."""
    length_ms = round(length_s * 1000)
    return Window(now - now % length_ms, length_ms)


class JobCost(Struct, frozen=True):
    """What a job cost in one kind: what was charged for it when it was accepted, and what it spent as it ran."""

    kind: str
    charged: Millionths
    spent: Millionths


def check_kind(kind: str) -> str:
    """Refuse what cannot name a kind.

    Raises:
        ValueError: the name is not one.
    """
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ValueError(f"{kind!r} is not a kind of units; it must match {_KIND.pattern}")
    return kind


def millionths(units: float) -> Millionths:
    """Units as they are kept, rounded to the nearest millionth.

    Raises:
        ValueError: they are not a number from 0 to UNITS_MAX.
    """
    if isinstance(units, bool) or not isinstance(units, int | float):
        raise ValueError(f"{units!r} is not a number of units")
    if not math.isfinite(units) or not 0 <= units <= limits.UNITS_MAX:
        raise ValueError(f"{units!r} is not a number of units from 0 to {limits.UNITS_MAX}")
    return round(units * ONE)


def units_of(amount: Millionths) -> int | float:
    """An amount as people read it: a whole number where it is one."""
    return amount // ONE if amount % ONE == 0 else amount / ONE


def amounts(declared: Mapping[str, float]) -> dict[str, Millionths]:
    """Units by kind, as they are kept.

    Raises:
        ValueError: a kind or its number is wrong, or there are too many.
    """
    if not isinstance(declared, Mapping) or not 0 < len(declared) <= limits.KINDS_MAX:
        raise ValueError(f"it must name 1 to {limits.KINDS_MAX} kinds with their units")
    return {check_kind(kind): millionths(units) for kind, units in declared.items()}


def left_for(kind: str, job_max: Millionths | None, totals: SpendTotals) -> Millionths | ErrorInfo | None:
    """What a job may still spend after a spend, None where nothing bounds it; or the error it ends with."""
    if job_max is None:
        return None
    if totals.by_job > job_max:
        return overspent(kind, "spend-max", f"this job may spend {units_of(job_max)}")
    return job_max - totals.by_job


def overspent(kind: str, code: str, bound: str) -> ErrorInfo:
    """The error of a job that has spent more than it may."""
    return ErrorInfo(ErrorCategory.LIMIT_EXCEEDED, f"The work has spent more of {kind!r} than it may: {bound}.", code)
