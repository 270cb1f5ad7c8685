"""Limits as they hold now, each with where it comes from, and how operators change them at run time."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from coatcheck.core import limits
from coatcheck.core.costs import BUDGET, check_kind
from coatcheck.core.problems import FieldError, Refused
from coatcheck.core.quotas import ALL, EACH, LimitKey, LimitName
from coatcheck.core.tenancy import LimitOverride
from coatcheck.operators.actor import Actor
from coatcheck.operators.faults import check_number, check_operation_name, check_tenant_name, invalid
from coatcheck.store.contract import Store
from coatcheck.store.controls import AuditEntry, ClearLimit, SetLimit

_WHOLE = frozenset({LimitName.QUEUED, LimitName.RUNNING})


class LimitOrigin(StrEnum):
    """Where a limit comes from.

    default: nobody set one. setting: from this process's settings. declared: from the operation's declaration.
    override: from an operator, at run time.
    """

    DEFAULT = "default"
    SETTING = "setting"
    DECLARED = "declared"
    OVERRIDE = "override"


class LimitInForce(Struct, frozen=True):
    """A limit that holds, or that there is none (`value` is None). See `core.quotas` for what its key can be."""

    name: str
    tenant: str
    operation: str
    value: float | None
    origin: LimitOrigin

    @property
    def meaning(self) -> str:
        """The value in words, so that nobody takes 0 for unlimited or the other way round."""
        if self.value is None:
            return "unlimited"
        return "none allowed" if self.value == 0 else f"at most {self.value:,g}"


class Limits:
    """What an operator may do to limits.

    Args:
        store: where those set at run time are.
        defaults: those of settings and declarations.
        operations: those of the app; None where the app is not at hand, so that any name may be one.
    """

    def __init__(
        self, store: Store, defaults: Mapping[LimitKey, float | None], operations: Collection[str] | None
    ) -> None:
        self._store = store
        self._defaults = defaults
        self._operations = operations

    async def list(self, tenant: str | None = None, operation: str | None = None) -> Sequence[LimitInForce]:
        """All limits that are or could be set. With a tenant or an operation, those that hold for it."""
        overrides = await self._overrides()
        keys = sorted({*self._defaults, *overrides})
        if tenant is not None:
            keys = [key for key in keys if _is_for_tenant(key, tenant, overrides)]
        if operation is not None:
            keys = [key for key in keys if key[2] in (operation, ALL)]
        return [self._in_force(key, overrides) for key in keys]

    async def find(self, key: LimitKey) -> LimitInForce:
        """The limit of this key. What was set for an operation that is declared no more is still there.

        Raises:
            Refused: `invalid-request`, or `not-found` where the app is at hand and has no such operation.
        """
        overrides = await self._overrides()
        if _checked(key) not in overrides and not self._is_declared(key[2]):
            raise Refused("not-found", "There is no operation of this name.")
        return self._in_force(key, overrides)

    async def set(self, key: LimitKey, value: float | None, actor: Actor) -> LimitInForce:
        """Set a limit, in the place of what settings and declarations say. 0: none allowed; None: unlimited.

        Raises:
            Refused: `invalid-request`, also where the app is at hand and neither it nor the store has such an
                operation; or `conflict` where too many others are set.
        """
        name, tenant, operation = _checked(key)
        _check_value(name, value)
        if not (self._is_declared(operation) or await self.has_work(operation)):
            raise invalid(FieldError("/operation", "There is no operation of this name."))
        before = self._in_force(key, await self._overrides())
        entry = self._entry(actor, "limit.set", before, value)
        await self._store.change_controls(SetLimit(LimitOverride(name, tenant, operation, value)), entry)
        after = self._in_force(key, await self._overrides())
        if (after.value, after.origin) != (value, LimitOrigin.OVERRIDE):
            raise Refused("conflict", f"{limits.LIMITS_SET_MAX:,} limits are set already; clear some.")
        return after

    async def clear(self, key: LimitKey, actor: Actor) -> LimitInForce:
        """Let settings and declarations hold again; what was not set stays as it is.

        Raises:
            Refused: as `find`.
        """
        before = await self.find(key)
        entry = self._entry(actor, "limit.clear", before, self._defaults.get(key))
        await self._store.change_controls(ClearLimit(*key), entry)
        return self._in_force(key, await self._overrides())

    async def has_work(self, operation: str) -> bool:
        """Whether the store has, or recently had, jobs of an operation. One that is new has none."""
        measures = await self._store.measure_queues(self._store.clock.now())
        return any(measure.operation == operation for measure in measures)

    def _is_declared(self, operation: str) -> bool:
        return self._operations is None or operation == ALL or operation in self._operations

    async def _overrides(self) -> Mapping[LimitKey, float | None]:
        controls = await self._store.read_controls()
        return {(limit.name, limit.tenant, limit.operation): limit.value for limit in controls.overrides}

    def _in_force(self, key: LimitKey, overrides: Mapping[LimitKey, float | None]) -> LimitInForce:
        name, tenant, operation = key
        value = overrides[key] if key in overrides else self._defaults.get(key)
        return LimitInForce(name, tenant, operation, value, self._origin(key, overrides))

    def _origin(self, key: LimitKey, overrides: Mapping[LimitKey, float | None]) -> LimitOrigin:
        if key in overrides:
            return LimitOrigin.OVERRIDE
        if self._defaults.get(key) is None:
            return LimitOrigin.DEFAULT
        return LimitOrigin.SETTING if key[2] == ALL else LimitOrigin.DECLARED

    def _entry(self, actor: Actor, action: str, before: LimitInForce, value: float | None) -> AuditEntry:
        details = {"tenant": before.tenant, "operation": before.operation, "from": before.value, "to": value}
        tenant = None if before.tenant in (EACH, ALL) else before.tenant
        return actor.entry(self._store.clock.now(), action, before.name, tenant, details)


def _is_for_tenant(key: LimitKey, tenant: str, overrides: Mapping[LimitKey, float | None]) -> bool:
    """Whether it holds for the tenant: its own, what all share, and what each has unless it has its own."""
    name, owner, operation = key
    return owner in (tenant, ALL) or (owner == EACH and (name, tenant, operation) not in overrides)


def _checked(key: LimitKey) -> LimitKey:
    name, tenant, operation = key
    if name.startswith(BUDGET):
        _check_budget(name, tenant)
    elif name not in list(LimitName):
        raise invalid(FieldError("/name", f"There is no such limit; there are {', '.join(LimitName)}, {BUDGET}KIND."))
    if tenant not in (EACH, ALL):
        check_tenant_name(tenant, "/tenant")
    if operation != ALL:
        check_operation_name(operation, "/operation")
    return key


def _check_budget(name: str, tenant: str) -> None:
    try:
        check_kind(name.removeprefix(BUDGET))
    except ValueError as error:
        raise invalid(FieldError("/name", f"{error}.")) from None
    if tenant == ALL:
        raise invalid(FieldError("/tenant", "A budget is a tenant's own: name one, or '*' for each."))


def _check_value(name: str, value: float | None) -> None:
    if value is None:
        return
    check_number(value, 0, limits.LIMIT_VALUE_MAX, "/value")
    if name in _WHOLE and value != int(value):
        raise invalid(FieldError("/value", "This must be a whole number."))
