"""Whose jobs one claim may start: by the terms, by how many of a tenant's run, and by its part of the worker."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from coatcheck.core.quotas import Limit, Places, Scope
from coatcheck.core.terms import Terms

Turn: TypeAlias = tuple[str, str]
"""Whose turn: an operation and a tenant."""


class Starts:
    """Kept through one claim, or one look at turns that are held.

    Args:
        terms: those that hold for tenants.
        shares: the most jobs of an operation that one tenant may have with this worker, where that is bounded.
        here: how many of them this worker has.
    """

    def __init__(self, terms: Terms, shares: Mapping[str, int], here: Mapping[Turn, int]) -> None:
        self._terms = terms
        self._shares = shares
        self._here = Counter(here)
        self._running = Places({})
        self._counted: set[Scope] = set()
        self._limits_of: dict[Turn, tuple[Limit, ...]] = {}
        self.is_free = terms.holds_nobody and not shares
        """Whether everybody may start everything."""

    def uncounted(self, turns: Iterable[Turn]) -> list[Scope]:
        """Where running jobs have to be counted before these turns can be judged."""
        scopes = {limit.scope_of(turn[1]) for turn in turns for limit in self._limits(turn)}
        return sorted(scopes - self._counted)

    def learn(self, counts: Iterable[tuple[str, str, int]]) -> None:
        """What was counted: tenant, operation or ALL, and how many run."""
        for tenant, operation, count in counts:
            self._counted.add((tenant, operation))
            self._running.put((tenant, operation), count)

    def is_held(self, turn: Turn) -> bool:
        """Whether no job may start in this turn, whoever claims. Only where its limits were counted."""
        operation, tenant = turn
        control = self._terms.controls.tenants.get(tenant)
        may_start = control is None or control.may_start_in(operation)
        return not may_start or self._running.met(tenant, self._limits(turn)) is not None

    def may_start(self, turn: Turn) -> bool:
        """Whether one more job may start in this turn with this worker."""
        share = self._shares.get(turn[0])
        return (share is None or self._here[turn] < share) and not self.is_held(turn)

    def full_here(self, operation: str) -> int:
        """How many tenants have their whole part of this worker, so that their turns are passed over."""
        share = self._shares.get(operation)
        return 0 if share is None else sum(name == operation and n >= share for (name, _), n in self._here.items())

    def start(self, turn: Turn) -> None:
        """A job of this turn is to start."""
        self._add(turn, 1)

    def settle(self, picked: Iterable[Turn], started: Iterable[Turn]) -> None:
        """Those that were to start and did not leave their places to others."""
        if not self.is_free:
            for turn, count in (Counter(picked) - Counter(started)).items():
                self._add(turn, -count)

    def cost(self, tenant: str) -> float:
        """How far a tenant's turn moves back for one job: less for one with more weight."""
        control = self._terms.controls.tenants.get(tenant)
        return 1.0 if control is None else 1.0 / control.weight

    def _add(self, turn: Turn, count: int) -> None:
        if not self.is_free:
            self._here[turn] += count
            self._running.take(turn[1], self._limits(turn), count)

    def _limits(self, turn: Turn) -> tuple[Limit, ...]:
        found = self._limits_of.get(turn)
        if found is None:
            operation, tenant = turn
            found = self._limits_of[turn] = self._terms.running(tenant, operation)
        return found
