"""Revoking a tenant: from when on it gets nothing more done, and what becomes of what it handed in before."""

from collections.abc import Mapping

from coatcheck.app import App
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import Refused
from coatcheck.core.tenancy import Revocation
from coatcheck.operators.actor import Actor
from coatcheck.operators.faults import no_tenant
from coatcheck.settings import Settings
from coatcheck.store.contract import Store
from coatcheck.store.controls import RestoreTenant, RevokeTenant, Tenant
from coatcheck.store.operating import TenantWork


class Revocations:
    """What an operator may do to end a tenant, and to bring it back.

    Args:
        store: where it is.
        default: the policy that holds where a revocation names none.
        declared: what operations declare instead of it.
    """

    def __init__(self, store: Store, default: Revocation, declared: Mapping[str, Revocation]) -> None:
        self._store = store
        self._default = default
        self._declared = declared

    async def revoke(self, name: str, policy: Revocation | None, actor: Actor) -> Tenant:
        """Revoke a tenant, or take a stricter policy than before. The same once more changes nothing.

        A policy that is named holds in all operations. Without one each operation's own holds, as it is declared now.

        Raises:
            Refused: `not-found`, or `conflict` where a stricter policy holds already, if only in one operation.
        """
        by_operation = {} if policy is not None else self._declared
        wanted = self._default if policy is None else policy
        now = self._store.clock.now()
        details: dict[str, Json] = {"policy": wanted.value}
        if by_operation:
            details["by_operation"] = {operation: one.value for operation, one in by_operation.items()}
        entry = actor.entry(now, "tenant.revoke", name, name, details)
        change = RevokeTenant(name, wanted, now, by_operation)
        is_changed = await self._store.change_controls(change, entry)
        tenant = await self._find(name)
        if not is_changed and any(change.compare(tenant)):
            raise Refused("conflict", f"Tenant {name!r} {_held(tenant)}; a stricter policy only can take its place.")
        return tenant

    async def restore(self, name: str, actor: Actor) -> Tenant:
        """Undo a revocation. A tenant that is not revoked stays as it is.

        Raises:
            Refused: `not-found`, or `conflict` where its jobs are ended for good.
        """
        now = self._store.clock.now()
        await self._store.change_controls(RestoreTenant(name, now), actor.entry(now, "tenant.restore", name, name))
        tenant = await self._find(name)
        if tenant.revocation is not None:
            raise Refused("conflict", f"Tenant {name!r} is revoked with {tenant.revocation}, which cannot be undone.")
        return tenant

    async def measure(self, name: str) -> TenantWork:
        """How many jobs of a tenant wait, run and are kept."""
        return await self._store.measure_tenant(name)

    async def _find(self, name: str) -> Tenant:
        tenant = await self._store.find_tenant(name)
        if tenant is None:
            raise no_tenant(name)
        return tenant


def _held(tenant: Tenant) -> str:
    if tenant.revocation is None:
        return "is not revoked"
    instead = ", ".join(f"with {policy} in {operation!r}" for operation, policy in tenant.by_operation.items())
    return f"is revoked with {tenant.revocation} already" + (f", and {instead}" if instead else "")


def revocations_of(settings: Settings, app: App, store: Store) -> Revocations:
    """Revocations with what settings and operations declare."""
    policies = {name: operation.policy.on_revoke for name, operation in app.operations.items()}
    declared = {name: policy for name, policy in policies.items() if policy is not None}
    return Revocations(store, settings.on_revoke, declared)
