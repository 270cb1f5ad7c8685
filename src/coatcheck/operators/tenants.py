"""Tenants: who may hand in work, with what share of the turns, and whether their jobs start."""

from collections.abc import Mapping, Sequence

from coatcheck.core import limits
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import Refused
from coatcheck.operators.actor import Actor
from coatcheck.operators.faults import check_number, check_tenant_name, no_tenant
from coatcheck.store.contract import Store
from coatcheck.store.controls import AddTenant, SetTenant, Tenant


class Tenants:
    """What an operator may do to tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, limit: int, after: str | None = None) -> Sequence[Tenant]:
        """Tenants by name, those after `after`."""
        return await self._store.list_tenants(limit, after)

    async def find(self, name: str) -> Tenant:
        """The tenant of this name.

        Raises:
            Refused: `not-found`.
        """
        tenant = await self._store.find_tenant(name)
        if tenant is None:
            raise no_tenant(name)
        return tenant

    async def add(self, name: str, weight: float, actor: Actor) -> Tenant:
        """Make a tenant.

        Raises:
            Refused: `invalid-request`, or `conflict` where the name is taken.
        """
        check_tenant_name(name, "/name")
        _check_weight(weight)
        now = self._store.clock.now()
        tenant = Tenant(name, now, weight=weight)
        entry = actor.entry(now, "tenant.add", name, name, {"weight": weight})
        if not await self._store.change_controls(AddTenant(tenant), entry):
            raise Refused("conflict", f"There is a tenant {name!r} already.")
        return tenant

    async def set(self, name: str, actor: Actor, weight: float | None = None, is_paused: bool | None = None) -> Tenant:
        """Set what is given. What is like that already changes nothing.

        Raises:
            Refused: `invalid-request` or `not-found`.
        """
        if weight is not None:
            _check_weight(weight)
        before = await self.find(name)
        details = _changes(before, weight, is_paused)
        entry = actor.entry(self._store.clock.now(), "tenant.set", name, name, details)
        await self._store.change_controls(SetTenant(name, weight, is_paused), entry)
        return await self.find(name)


def _check_weight(weight: float) -> None:
    check_number(weight, limits.TENANT_WEIGHT_MIN, limits.TENANT_WEIGHT_MAX, "/weight")


def _changes(before: Tenant, weight: float | None, is_paused: bool | None) -> Mapping[str, Json]:
    """What is to be, with what was before."""
    details: dict[str, Json] = {}
    if weight is not None:
        details["weight"] = {"from": before.weight, "to": weight}
    if is_paused is not None:
        details["paused"] = {"from": before.is_paused, "to": is_paused}
    return details
