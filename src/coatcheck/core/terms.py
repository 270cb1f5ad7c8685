"""Under which terms a tenant's jobs are taken and started, as one process knows them at one moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from coatcheck.core import limits
from coatcheck.core.costs import BUDGET, DEFAULT_WINDOW_S, ONE, Cap, Charge, Millionths, Window, window_of
from coatcheck.core.job import InstantMs
from coatcheck.core.quotas import Limit, LimitBook, LimitName
from coatcheck.core.tenancy import Controls, TenantControl


@dataclass(frozen=True)
class Terms:
    """What operators decided about tenants, and the limits that hold.

    `windows`: how long the window of a kind of cost is, in seconds; of those left out, DEFAULT_WINDOW_S.
    """

    controls: Controls = field(default_factory=Controls)
    book: LimitBook = field(default_factory=lambda: LimitBook({}))
    windows: Mapping[str, float] = field(default_factory=dict)

    def tenant(self, name: str) -> TenantControl:
        """What was decided about a tenant, or what holds for everybody."""
        return self.controls.tenants.get(name) or TenantControl(name)

    def queued(self, tenant: str, operation: str) -> tuple[Limit, ...]:
        """The tenant's own limits on queued jobs that an operation's job meets."""
        return self.book.own(LimitName.QUEUED, tenant, operation)

    def running(self, tenant: str, operation: str) -> tuple[Limit, ...]:
        """The tenant's own limits on running jobs that an operation's job meets."""
        return self.book.own(LimitName.RUNNING, tenant, operation)

    def window(self, kind: str, now: InstantMs) -> Window:
        """The window of a kind of cost that `now` lies in."""
        return window_of(now, self.windows.get(kind, DEFAULT_WINDOW_S))

    def caps(self, kind: str, tenant: str, operation: str) -> tuple[Cap, ...]:
        """The tenant's own budgets of a kind that hold for an operation's work: in the operation, and over all."""
        found = self.book.own(BUDGET + kind, tenant, operation)
        return tuple(Cap(limit.key[2], round(min(limit.value * ONE, limits.SPENT_MILLIONTHS_MAX))) for limit in found)

    def charges(
        self, tenant: str, operation: str, costs: Iterable[tuple[str, Millionths]], now: InstantMs
    ) -> tuple[Charge, ...]:
        """What a job is to be charged that costs this and is accepted now."""
        return tuple(
            Charge(kind, units, self.window(kind, now), self.caps(kind, tenant, operation)) for kind, units in costs
        )

    @cached_property
    def holds_nobody(self) -> bool:
        """Whether every tenant's jobs may start whenever it is its turn."""
        is_free = all(tenant.may_start for tenant in self.controls.tenants.values())
        return is_free and not self.book.has(LimitName.RUNNING)


ANY_TERMS = Terms()
"""Nobody has a limit or is treated in any special way."""
