"""What work costs: units of a kind, charged when a job is accepted or spent while it runs, and the budgets for them.

Units are kept in millionths, as whole numbers: their sums are exact in whatever order they are made.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from coatcheck.core import limits
from coatcheck.core.durations import seconds
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import InstantMs

Millionths: TypeAlias = int
Cost: TypeAlias = float | Callable[[Any], float]
"""What an operation declares: a number of units, or a function of the parsed request that returns one."""

ONE: Final = 1_000_000
DEFAULT_KIND: Final = "cost"
OTHER_KIND: Final = "other"
"""What metrics call the kinds that no declaration names: a handler may make them up."""
DEFAULT_WINDOW_S: Final = 24 * 3600.0
ALL_OPERATIONS: Final = ""
BUDGET: Final = "budget:"
"""With a kind behind it, the name of a limit: units in a window."""
_BUDGET = re.compile(r"\s*([0-9][0-9_]*(?:[.][0-9]+)?)\s+(\S+)\s*/\s*(\S+)\s*")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class SpendTotals(NamedTuple):
    """What stands after a spend: what the job has spent of the kind, and what its tenant's jobs cost in the window, in
    the job's operation and in all of them."""

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


class Budget(NamedTuple):
    """The units of a kind that a tenant's jobs may cost in each window."""

    kind: str
    units: float
    window_s: float


class Cap(NamedTuple):
    """A budget that holds for a charge or a spend: of the tenant in one operation, or in ALL_OPERATIONS together."""

    operation: str
    most: Millionths


class Charge(Struct, frozen=True):
    """What a job is to cost its tenant when it is accepted, in one kind, and the budgets that hold for it."""

    kind: str
    units: Millionths
    window: Window
    caps: tuple[Cap, ...] = ()


class OverBudget(Struct, frozen=True):
    """A charge that does not fit into a budget, of which `used` is gone."""

    charge: Charge
    cap: Cap
    used: Millionths

    @property
    def left(self) -> Millionths:
        """What is left of the budget: less than the charge."""
        return max(self.cap.most - self.used, 0)


Purse: TypeAlias = tuple[str, str, Window, str]
"""What is counted together: a tenant, a kind, a window, and an operation or ALL_OPERATIONS."""


class Purses:
    """What is used of budgets: counted by the caller, then kept by arithmetic.

    Args:
        used: of every purse that will be asked for.
    """

    def __init__(self, used: Mapping[Purse, Millionths]) -> None:
        self._used = dict(used)

    def exceeded(self, tenant: str, charges: Iterable[Charge]) -> OverBudget | None:
        """The first of a tenant's charges that does not fit, if there is one."""
        for charge in charges:
            for cap in charge.caps:
                used = self._used.get((tenant, charge.kind, charge.window, cap.operation), 0)
                if used + charge.units > cap.most:
                    return OverBudget(charge, cap, used)
        return None

    def take(self, tenant: str, charges: Iterable[Charge]) -> None:
        """Charge the tenant."""
        for charge in charges:
            for cap in charge.caps:
                purse = (tenant, charge.kind, charge.window, cap.operation)
                self._used[purse] = self._used.get(purse, 0) + charge.units


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


def budget(text: str) -> Budget:
    """A budget as it is written: "10000 tokens / 1d".

    Raises:
        ValueError: it is not written so, or its window is not 1 minute to 31 days in whole minutes.
    """
    match = _BUDGET.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'{text!r} is not a budget; write units, kind and window, such as "10000 tokens / 1d"')
    window_s = seconds(match[3])
    if not 60 <= window_s <= limits.BUDGET_WINDOW_S_MAX or window_s % 60:
        days = limits.BUDGET_WINDOW_S_MAX // 86_400
        raise ValueError(f"{match[3]!r} is not a window; it must be whole minutes, from 1m to {days}d")
    units = float(match[1].replace("_", ""))
    millionths(units)
    return Budget(check_kind(match[2]), units, window_s)


def declared_costs(declared: Any) -> dict[str, Cost]:
    """What an operation's jobs cost, by kind: a number or function alone is of the default kind.

    Raises:
        ValueError: a kind or a number is wrong, or there are too many.
    """
    by_kind = declared if isinstance(declared, Mapping) else {DEFAULT_KIND: declared}
    if not 0 < len(by_kind) <= limits.KINDS_MAX:
        raise ValueError(f"it must name 1 to {limits.KINDS_MAX} kinds with their costs")
    for kind, cost in by_kind.items():
        check_kind(kind)
        if not callable(cost):
            millionths(cost)
    return dict(by_kind)


def declared_budgets(declared: Any) -> dict[str, Budget]:
    """Budgets by their kind, from a text or several.

    Raises:
        ValueError: one is wrong, a kind stands twice, or there are too many.
    """
    texts = [declared] if isinstance(declared, str) else list(declared)
    budgets = {one.kind: one for one in map(budget, texts)}
    if not 0 < len(budgets) == len(texts) <= limits.KINDS_MAX:
        raise ValueError(f"it must name 1 to {limits.KINDS_MAX} budgets, each of another kind")
    return budgets


def amounts(declared: Mapping[str, float]) -> dict[str, Millionths]:
    """Units by kind, as they are kept.

    Raises:
        ValueError: a kind or its number is wrong, or there are too many.
    """
    if not isinstance(declared, Mapping) or not 0 < len(declared) <= limits.KINDS_MAX:
        raise ValueError(f"it must name 1 to {limits.KINDS_MAX} kinds with their units")
    return {check_kind(kind): millionths(units) for kind, units in declared.items()}


def left_after(
    kind: str, job_max: Millionths | None, caps: Iterable[Cap], totals: SpendTotals
) -> Millionths | ErrorInfo | None:
    """What a job may still spend after a spend, None where nothing bounds it; or the error it ends with."""
    left: list[Millionths] = []
    if job_max is not None:
        if totals.by_job > job_max:
            return _overspent(kind, "spend-max", f"this job may spend {units_of(job_max)}")
        left.append(job_max - totals.by_job)
    for cap in caps:
        is_of_all = cap.operation == ALL_OPERATIONS
        used = totals.by_tenant if is_of_all else totals.in_operation
        if used > cap.most:
            where = "" if is_of_all else f" in {cap.operation!r}"
            return _overspent(kind, "budget-exceeded", f"its tenant's budget{where} of {units_of(cap.most)} is used up")
        left.append(cap.most - used)
    return min(left, default=None)


def _overspent(kind: str, code: str, bound: str) -> ErrorInfo:
    return ErrorInfo(ErrorCategory.LIMIT_EXCEEDED, f"The work has spent more of {kind!r} than it may: {bound}.", code)
