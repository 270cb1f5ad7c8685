"""The limits of tenants and operations: their names, whom each is for, and which holds where several are set.

A limit is named by (name, tenant, operation). The tenant is a tenant's name, EACH for every tenant by itself, or ALL
for all of them together; the operation is an operation's name, or ALL for all of them together. 0 means none allowed;
what is absent or None is unlimited.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from coatcheck.core import limits
from coatcheck.core.tenancy import LimitOverride

EACH: Final = "*"
ALL: Final = ""

LimitKey: TypeAlias = tuple[str, str, str]
"""(name, tenant, operation)."""

Scope: TypeAlias = tuple[str, str]
"""What is counted together for a tenant: its work in an operation, or in ALL of them."""


class LimitName(StrEnum):
    """What is limited. Rates are per second; a burst is what may come at once after a pause."""

    SUBMIT_RATE = "submit_rate"
    SUBMIT_BURST = "submit_burst"
    READ_RATE = "read_rate"
    READ_BURST = "read_burst"
    QUEUED = "queued"
    RUNNING = "running"
    AGE_S = "age_s"


class Limit(NamedTuple):
    """A limit that holds: its key, and the most that is allowed."""

    key: LimitKey
    value: float

    @property
    def is_of_tenant(self) -> bool:
        """Whether it is one tenant's own, and not one that all tenants share."""
        return self.key[1] != ALL

    def scope_of(self, tenant: str) -> Scope:
        """What is counted for a tenant that has this limit."""
        return tenant, self.key[2]


class LimitSource(Protocol):
    """Whoever knows the limits of the moment: another moment may have another book."""

    @property
    def book(self) -> "LimitBook": ...


class LimitBook:
    """All limits of one moment.

    Args:
        defaults: from settings (tenant EACH or ALL, operation ALL) and from the operations' declarations.
        overrides: what operators set at run time; each stands in the place of a default of the same key.
    """

    def __init__(self, defaults: Mapping[LimitKey, float | None], overrides: Iterable[LimitOverride] = ()) -> None:
        changed = {(override.name, override.tenant, override.operation): override.value for override in overrides}
        self._values: Mapping[LimitKey, float | None] = {**defaults, **changed}
        self._names = frozenset(name for (name, _, _), value in self._values.items() if value is not None)
        self._own = lru_cache(limits.TENANT_LIMITS_REMEMBERED_MAX)(self._find_own)

    @property
    def values(self) -> Mapping[LimitKey, float | None]:
        """Every limit that is set, unlimited ones included."""
        return self._values

    def has(self, name: str) -> bool:
        """Whether anybody has a limit of this name: if not, nothing needs to be counted for it."""
        return name in self._names

    def of(self, name: str, tenant: str, operation: str) -> list[Limit]:
        """The limits that hold for a tenant's work in an operation, the most particular first.

        Up to four hold at once: the tenant's in the operation, the tenant's over all operations, and those that all
        tenants share, in the operation and over all. For the first two a tenant's own stands before that of EACH.
        """
        if name not in self._names:
            return []
        found = (
            self._first((name, tenant, operation), (name, EACH, operation)),
            self._first((name, tenant, ALL), (name, EACH, ALL)),
            self._first((name, ALL, operation)),
            self._first((name, ALL, ALL)),
        )
        return [limit for limit in found if limit is not None]

    def own(self, name: str, tenant: str, operation: str) -> tuple[Limit, ...]:
        """Of these, those that are the tenant's own: in the operation, and over all."""
        return self._own(name, tenant, operation) if name in self._names else ()

    def _find_own(self, name: str, tenant: str, operation: str) -> tuple[Limit, ...]:
        return tuple(limit for limit in self.of(name, tenant, operation) if limit.is_of_tenant)

    def _first(self, *keys: LimitKey) -> Limit | None:
        for key in keys:
            if key in self._values:
                value = self._values[key]
                return None if value is None else Limit(key, value)
        return None


class Places:
    """How many places are taken in each scope: counted by the caller, then kept by arithmetic.

    Args:
        counts: of every scope that will be asked for.
    """

    def __init__(self, counts: Mapping[Scope, int]) -> None:
        self._counts = dict(counts)

    def taken(self, scope: Scope) -> int:
        """How many places of a scope are taken."""
        return self._counts.get(scope, 0)

    def put(self, scope: Scope, count: int) -> None:
        """How many are taken, as just counted."""
        self._counts[scope] = count

    def met(self, tenant: str, limits: Iterable[Limit]) -> Limit | None:
        """The first of a tenant's limits that leaves no place for one more."""
        return next((limit for limit in limits if self.taken(limit.scope_of(tenant)) + 1 > limit.value), None)

    def take(self, tenant: str, limits: Iterable[Limit], count: int = 1) -> None:
        """Take places under each of the limits, or give them back: a negative count."""
        for limit in limits:
            scope = limit.scope_of(tenant)
            self._counts[scope] = self.taken(scope) + count
