"""Under which terms a tenant's jobs are taken and started, as one process knows them at one moment."""

from dataclasses import dataclass, field
from functools import cached_property

from coatcheck.core.quotas import Limit, LimitBook, LimitName
from coatcheck.core.tenancy import Controls, TenantControl


@dataclass(frozen=True)
class Terms:
    """What operators decided about tenants, and the limits that hold."""

    controls: Controls = field(default_factory=Controls)
    book: LimitBook = field(default_factory=lambda: LimitBook({}))

    def tenant(self, name: str) -> TenantControl:
        """What was decided about a tenant, or what holds for everybody."""
        return self.controls.tenants.get(name) or TenantControl(name)

    def queued(self, tenant: str, operation: str) -> tuple[Limit, ...]:
        """The tenant's own limits on queued jobs that an operation's job meets."""
        return self.book.own(LimitName.QUEUED, tenant, operation)

    def running(self, tenant: str, operation: str) -> tuple[Limit, ...]:
        """The tenant's own limits on running jobs that an operation's job meets."""
        return self.book.own(LimitName.RUNNING, tenant, operation)

    @cached_property
    def holds_nobody(self) -> bool:
        """Whether every tenant's jobs may start whenever it is its turn."""
        is_free = all(tenant.may_start for tenant in self.controls.tenants.values())
        return is_free and not self.book.has(LimitName.RUNNING)


ANY_TERMS = Terms()
"""Nobody has a limit or is treated in any special way."""
