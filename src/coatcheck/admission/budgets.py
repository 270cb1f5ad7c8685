"""Budgets: what work is charged when it is accepted, and which of its tenant's budgets hold for it then."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coatcheck.app import App, Operation
from coatcheck.core import limits
from coatcheck.core.costs import (
    ALL_OPERATIONS,
    DEFAULT_WINDOW_S,
    ONE,
    Budget,
    Cap,
    Charge,
    Millionths,
    OverBudget,
    Window,
    millionths,
    units_of,
    window_of,
)
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import LimitBook

NAME_PREFIX = "budget:"


class CostFailed(Exception):
    """An operation's cost function raised, or returned no number of units: the app's fault, not its client's."""


class BudgetsDiffer(Exception):
    """A kind is declared with windows of different lengths; the message says which, in one sentence."""


class Budgets:
    """The budgets of one process at each moment.

    Args:
        book: the limits of the moment; the budget of a kind is the limit `budget:KIND`.
        windows: the length of each kind's window in seconds; those left out have DEFAULT_WINDOW_S.
    """

    def __init__(
        self, book: Callable[[], LimitBook] = lambda: LimitBook({}), windows: Mapping[str, float] | None = None
    ) -> None:
        self._book = book
        self._windows = windows or {}

    def window(self, kind: str, now: InstantMs) -> Window:
        """The window of a kind that `now` lies in."""
        return window_of(now, self._windows.get(kind, DEFAULT_WINDOW_S))

    def caps(self, kind: str, tenant: str, operation: str) -> tuple[Cap, ...]:
        """The tenant's own budgets of a kind that hold for an operation's work: in the operation, and over all."""
        found = self._book().of(NAME_PREFIX + kind, tenant, operation)
        return tuple(Cap(limit.key[2], _most(limit.value)) for limit in found if limit.is_of_tenant)

    def charges(
        self, tenant: str, operation: str, costs: Iterable[tuple[str, Millionths]], now: InstantMs
    ) -> tuple[Charge, ...]:
        """What a job is to be charged that is accepted now."""
        return tuple(
            Charge(kind, units, self.window(kind, now), self.caps(kind, tenant, operation)) for kind, units in costs
        )


def windows_of(app: App, budgets: Iterable[Budget]) -> dict[str, float]:
    """The length in seconds of the window of every kind that has a budget, in the settings or in a declaration.

    Raises:
        BudgetsDiffer: a kind has windows of two lengths, so that nobody could say what is left of it.
    """
    windows: dict[str, float] = {}
    declared = [budget for operation in app.operations.values() for budget in operation.policy.budgets.values()]
    for budget in [*budgets, *declared]:
        known = windows.setdefault(budget.kind, budget.window_s)
        if known != budget.window_s:
            raise BudgetsDiffer(
                f"The budgets of {budget.kind!r} have windows of {known:g} and of {budget.window_s:g} seconds; a kind has"
                " one window in the settings and in all operations."
            )
    return windows


def costs_of(operation: Operation, request: Any) -> tuple[tuple[str, Millionths], ...]:
    """What an operation's job costs that is made of this request, by kind.

    Raises:
        CostFailed: it could not be worked out.
    """
    costs: list[tuple[str, Millionths]] = []
    for kind, cost in operation.policy.cost.items():
        try:
            costs.append((kind, millionths(cost(request) if callable(cost) else cost)))
        except Exception as error:
            raise CostFailed(f"The cost of {operation.name!r} in {kind!r} cannot be worked out: {error}") from error
    return tuple(costs)


def budget_exceeded(over: OverBudget, now: InstantMs) -> Refused:
    """The refusal of work that does not fit into a budget. The end of its window is when there is more of it."""
    charge, cap = over.charge, over.cap
    wait_s = max(1, math.ceil((charge.window.ends_at - now) / 1000))
    is_of_all = cap.operation == ALL_OPERATIONS
    where, name = ("", charge.kind) if is_of_all else (f" in {cap.operation!r}", f"{charge.kind}-{cap.operation}")
    most, left = units_of(cap.most), units_of(over.left)
    detail = f"This work costs {units_of(charge.units)} {charge.kind}; {left} of this tenant's {most}{where} are left."
    fields = [
        ("Retry-After", str(wait_s)),
        ("RateLimit-Policy", f'"{name}";q={cap.most // ONE};w={charge.window.length_ms // 1000}'),
        ("RateLimit", f'"{name}";r={over.left // ONE};t={wait_s}'),
    ]
    return Refused("budget-exceeded", detail, headers=fields)


def _most(units: float) -> Millionths:
    return round(min(units * ONE, limits.SPENT_MILLIONTHS_MAX))
