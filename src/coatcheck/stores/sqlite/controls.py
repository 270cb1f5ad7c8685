"""What operators decide: each change one transaction with its audit entry and a higher version of the controls."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import structs

from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.tenancy import Controls, LimitOverride, OperationMode, Revocation, TenantControl
from coatcheck.store.controls import (
    AddKey,
    AddTenant,
    ApiKey,
    AuditedEntry,
    AuditEntry,
    ClearLimit,
    ControlChange,
    KeyChange,
    RestoreTenant,
    RevokeKey,
    RevokeTenant,
    RotateKey,
    SetLimit,
    SetMode,
    SetTenant,
    Tenant,
    TenantChange,
)
from coatcheck.store.records import WakeUpKind
from coatcheck.store.revoking import read_policies
from coatcheck.stores.sqlite.audit import write_audit
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.readers import Snapshot
from coatcheck.stores.sqlite.rows import Row
from coatcheck.stores.sqlite.transaction import Transaction

_NO_KEY = ""
_NEWEST = 2**63 - 1


class Controlling(Facet):
    """The engine's ControlStore."""

    async def read_controls_version(self) -> int:
        return self._readers.here(_read_version)

    async def read_controls(self) -> Controls:
        return await self._readers.aside(_read_controls)

    async def change_controls(self, change: ControlChange, entry: AuditEntry) -> bool:
        return await self._writer.run(lambda transaction: _change_audited(transaction, change, entry))

    async def find_tenant(self, name: str) -> Tenant | None:
        row = self._readers.here(lambda snapshot: snapshot.row("find_tenant", name=name))
        return None if row is None else _tenant(row)

    async def list_tenants(self, limit: int, after: str | None = None) -> Sequence[Tenant]:
        rows = await self._readers.aside(
            lambda snapshot: snapshot.rows("list_tenants", after="" if after is None else after, limit=limit)
        )
        return [_tenant(row) for row in rows]

    async def find_key(self, key_id: str) -> ApiKey | None:
        row = self._readers.here(lambda snapshot: snapshot.row("find_api_key", key_id=key_id))
        return None if row is None else _key(row)

    async def list_keys(self, tenant: str) -> Sequence[ApiKey]:
        rows = await self._readers.aside(
            lambda snapshot: snapshot.rows("list_api_keys", tenant=tenant, limit=limits.KEYS_LISTED_MAX)
        )
        return [_key(row) for row in reversed(rows)]

    async def touch_keys(self, used: Mapping[str, InstantMs]) -> None:
        if used:
            rows = list(used.items())
            await self._writer.run(lambda transaction: transaction.run_many("touch_api_keys", rows))

    async def read_audit(
        self, limit: int, before: int | None = None, tenant: str | None = None
    ) -> Sequence[AuditedEntry]:
        values = {"limit": limit, "before": _NEWEST if before is None else before}
        rows = await self._readers.aside(
            lambda snapshot: (
                snapshot.rows("read_audit", **values)
                if tenant is None
                else snapshot.rows("read_audit_of_tenant", tenant=tenant, **values)
            )
        )
        return [_audited(row) for row in rows]


def _read_version(snapshot: Snapshot) -> int:
    version: int = snapshot.rows("read_controls_version")[0][0]
    return version


def _read_controls(snapshot: Snapshot) -> Controls:
    tenants = snapshot.rows("list_controlled_tenants")
    return Controls(
        version=_read_version(snapshot),
        tenants={
            name: TenantControl(
                name, weight, bool(is_paused), revocation and Revocation(revocation), read_policies(by_operation)
            )
            for name, weight, is_paused, revocation, by_operation in tenants
        },
        modes={operation: OperationMode(mode) for operation, mode in snapshot.rows("list_modes")},
        overrides=tuple(LimitOverride(*row) for row in snapshot.rows("list_overrides")),
    )


def _change_audited(transaction: Transaction, change: ControlChange, entry: AuditEntry) -> bool:
    if not _change(transaction, change):
        return False
    transaction.run("raise_controls_version")
    write_audit(transaction, entry)
    transaction.hint(WakeUpKind.CONTROLS)
    return True


def _change(transaction: Transaction, change: ControlChange) -> bool:
    """Whether there was anything to change."""
    match change:
        case AddTenant() | SetTenant() | RevokeTenant() | RestoreTenant():
            return _change_tenant(transaction, change) > 0
        case AddKey() | RotateKey() | RevokeKey():
            return _change_key(transaction, change) > 0
        case SetLimit(override):
            return transaction.run("set_limit", **structs.asdict(override), set_max=limits.LIMITS_SET_MAX) > 0
        case ClearLimit():
            return transaction.run("clear_limit", **structs.asdict(change)) > 0
        case SetMode(operation, OperationMode.OPEN):
            return transaction.run("clear_mode", operation=operation) > 0
        case SetMode(operation, mode):
            return transaction.run("set_mode", operation=operation, mode=mode) > 0
        case _:
            assert_never(change)


def _change_tenant(transaction: Transaction, change: TenantChange) -> int:
    match change:
        case AddTenant(tenant):
            return transaction.run("insert_tenant", **structs.asdict(tenant))
        case SetTenant():
            return transaction.run("set_tenant", **structs.asdict(change))
        case RevokeTenant():
            return _revoke_tenant(transaction, change)
        case RestoreTenant(name, at):
            return transaction.run("restore_tenant", name=name, at=at)
        case _:
            assert_never(change)


def _revoke_tenant(transaction: Transaction, change: RevokeTenant) -> int:
    row = transaction.row("find_tenant", name=change.name)
    if row is None or not change.may_replace(_tenant(row)):
        return 0
    by_operation = msgspec.json.encode(change.by_operation).decode()
    return transaction.run(
        "revoke_tenant", name=change.name, policy=change.policy, at=change.at, by_operation=by_operation
    )


def _change_key(transaction: Transaction, change: KeyChange) -> int:
    match change:
        case AddKey(key):
            return _add_key(transaction, key, _NO_KEY)
        case RotateKey():
            return _rotate_key(transaction, change)
        case RevokeKey(key_id, at):
            return transaction.run("revoke_api_key", key_id=key_id, at=at)
        case _:
            assert_never(change)


def _add_key(transaction: Transaction, key: ApiKey, old_key_id: str) -> int:
    values = {**structs.asdict(key), "scopes": " ".join(key.scopes)}
    live_max = limits.KEYS_PER_TENANT_MAX
    return transaction.run("insert_api_key", **values, old_key_id=old_key_id, live_max=live_max)


def _rotate_key(transaction: Transaction, change: RotateKey) -> int:
    key = change.key
    if not _is_live(transaction.row("find_api_key", key_id=change.old_key_id), key):
        return 0
    if not _add_key(transaction, key, change.old_key_id):
        return 0
    return transaction.run("shorten_api_key", key_id=change.old_key_id, expires_at=change.old_expires_at)


def _is_live(row: Row | None, beside: ApiKey) -> bool:
    """Whether the row is a key of the same tenant that is of use when the other one is made."""
    if row is None:
        return False
    key = _key(row)
    return key.tenant == beside.tenant and key.is_live(beside.created_at)


def _tenant(row: Row) -> Tenant:
    name, created_at, weight, is_paused, revocation, revoked_at, done_at, by_operation, restored_at = row
    policy = None if revocation is None else Revocation(revocation)
    policies = read_policies(by_operation)
    return Tenant(name, created_at, weight, bool(is_paused), policy, revoked_at, done_at, policies, restored_at)


def _key(row: Row) -> ApiKey:
    key_id, tenant, digest, scopes, *rest = row
    return ApiKey(key_id, tenant, digest, tuple(scopes.split()), *rest)


def _audited(row: Row) -> AuditedEntry:
    seq, at, actor, origin, action, target, tenant, details = row
    return AuditedEntry(seq, AuditEntry(at, actor, origin, action, target, tenant, msgspec.json.decode(details)))
