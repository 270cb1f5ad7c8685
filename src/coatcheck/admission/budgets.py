"""Budgets: what work costs when it comes in, how long windows are, and how work is refused that costs too much."""

import math
from typing import Any

from coatcheck.app import App, Operation
from coatcheck.core.costs import ALL_OPERATIONS, ONE, Millionths, OverBudget, millionths, units_of
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import Refused
from coatcheck.setting_file import SettingsError
from coatcheck.settings import Settings


class CostFailed(Exception):
    """An operation's cost function raised, or returned no number of units: the app's fault, not its client's."""


def windows_of(settings: Settings, app: App) -> dict[str, float]:
    """The length in seconds of the window of every kind that has a budget, in the settings or in a declaration.

    Raises:
        SettingsError: a kind has windows of two lengths, so that nobody could say what is left of it.
    """
    windows: dict[str, float] = {}
    declared = [budget for operation in app.operations.values() for budget in operation.policy.budgets.values()]
    for budget in [*settings.budgets, *declared]:
        known = windows.setdefault(budget.kind, budget.window_s)
        if known != budget.window_s:
            lengths = f"{known:g} and of {budget.window_s:g} seconds"
            raise SettingsError(
                f"budgets: {budget.kind!r} has windows of {lengths}; give it one window here and in every operation."
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
