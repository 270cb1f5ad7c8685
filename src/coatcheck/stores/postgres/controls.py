"""What operators decide: each change one transaction with its audit entry and a higher version of the controls."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import asyncpg
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
from coatcheck.stores.postgres.audit import write_audit
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.rows import Row, columns
from coatcheck.stores.postgres.transaction import Transaction

_NO_KEY = ""
_NEWEST = 2**63 - 1
_NEW_TENANT_COLUMNS = 7

_TENANTS = msgspec.json.Decoder(list[TenantControl])
_MODES = msgspec.json.Decoder(dict[str, OperationMode])
_OVERRIDES = msgspec.json.Decoder(tuple[LimitOverride, ...])


class Controlling(Facet):
    """The engine's ControlStore. A text with U+0000, which PostgreSQL cannot hold, names nothing."""

    async def read_controls_version(self) -> int:
        ((version,),) = await self._transactions.read("read_controls_version")
        return int(version)

    async def read_controls(self) -> Controls:
        ((version, tenants, modes, overrides),) = await self._transactions.read("read_controls")
        controlled = {tenant.name: tenant for tenant in _TENANTS.decode(tenants)}
        return Controls(version, controlled, _MODES.decode(modes), _OVERRIDES.decode(overrides))

    async def change_controls(self, change: ControlChange, entry: AuditEntry) -> bool:
        try:
            return await self._transactions.run(lambda transaction: _change_audited(transaction, change, entry))
        except asyncpg.CharacterNotInRepertoireError:
            return False

    async def find_tenant(self, name: str) -> Tenant | None:
        rows = [] if "\0" in name else await self._transactions.read("find_tenant", name)
        return _tenant(rows[0]) if rows else None

    async def list_tenants(self, limit: int, after: str | None = None) -> Sequence[Tenant]:
        rows = await self._transactions.read("list_tenants", "" if after is None else after, limit)
        return [_tenant(row) for row in rows]

    async def find_key(self, key_id: str) -> ApiKey | None:
        rows = [] if "\0" in key_id else await self._transactions.read("find_api_key", key_id)
        return _key(rows[0]) if rows else None

    async def list_keys(self, tenant: str) -> Sequence[ApiKey]:
        rows = await self._transactions.read("list_api_keys", tenant, limits.KEYS_LISTED_MAX)
        return [_key(row) for row in reversed(rows)]

    async def touch_keys(self, used: Mapping[str, InstantMs]) -> None:
        if used:
            rows = columns(list(used.items()), 2)
            await self._transactions.run(lambda transaction: transaction.run("touch_api_keys", *rows), True)

    async def read_audit(
        self, limit: int, before: int | None = None, tenant: str | None = None
    ) -> Sequence[AuditedEntry]:
        place = (_NEWEST if before is None else before, limit)
        if tenant is None:
            rows = await self._transactions.read("read_audit", *place)
        else:
            rows = await self._transactions.read("read_audit_of_tenant", *place, tenant)
        return [_audited(row) for row in rows]


async def _change_audited(transaction: Transaction, change: ControlChange, entry: AuditEntry) -> bool:
    await transaction.rows("hold_controls")
    if not await _change(transaction, change):
        return False
    await transaction.run("raise_controls_version")
    await write_audit(transaction, entry)
    transaction.hint(WakeUpKind.CONTROLS)
    return True


async def _change(transaction: Transaction, change: ControlChange) -> bool:
    """Whether there was anything to change."""
    match change:
        case AddTenant() | SetTenant() | RevokeTenant() | RestoreTenant():
            return await _change_tenant(transaction, change) > 0
        case AddKey() | RotateKey() | RevokeKey():
            return await _change_key(transaction, change) > 0
        case SetLimit(override):
            return await transaction.run("set_limit", *structs.astuple(override), limits.LIMITS_SET_MAX) > 0
        case ClearLimit():
            return await transaction.run("clear_limit", *structs.astuple(change)) > 0
        case SetMode(operation, OperationMode.OPEN):
            return await transaction.run("clear_mode", operation) > 0
        case SetMode(operation, mode):
            return await transaction.run("set_mode", operation, mode) > 0
        case _:
            assert_never(change)


async def _change_tenant(transaction: Transaction, change: TenantChange) -> int:
    match change:
        case AddTenant(tenant):
            return await transaction.run("insert_tenant", *structs.astuple(tenant)[:_NEW_TENANT_COLUMNS])
        case SetTenant():
            return await transaction.run("set_tenant", *structs.astuple(change))
        case RevokeTenant():
            return await _revoke_tenant(transaction, change)
        case RestoreTenant(name, at):
            return await transaction.run("restore_tenant", name, at)
        case _:
            assert_never(change)


async def _revoke_tenant(transaction: Transaction, change: RevokeTenant) -> int:
    row = await transaction.row("find_tenant", change.name)
    if row is None or not change.may_replace(_tenant(row)):
        return 0
    by_operation = msgspec.json.encode(change.by_operation).decode()
    return await transaction.run("revoke_tenant", change.name, change.policy, change.at, by_operation)


async def _change_key(transaction: Transaction, change: KeyChange) -> int:
    match change:
        case AddKey(key):
            return await _add_key(transaction, key, _NO_KEY)
        case RotateKey():
            return await _rotate_key(transaction, change)
        case RevokeKey(key_id, at):
            return await transaction.run("revoke_api_key", key_id, at)
        case _:
            assert_never(change)


async def _add_key(transaction: Transaction, key: ApiKey, old_key_id: str) -> int:
    values = structs.astuple(structs.replace(key, scopes=" ".join(key.scopes)))
    return await transaction.run("insert_api_key", *values, old_key_id, limits.KEYS_PER_TENANT_MAX)


async def _rotate_key(transaction: Transaction, change: RotateKey) -> int:
    key = change.key
    if not _is_live(await transaction.row("find_api_key", change.old_key_id), key):
        return 0
    if not await _add_key(transaction, key, change.old_key_id):
        return 0
    return await transaction.run("shorten_api_key", change.old_key_id, change.old_expires_at)


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
    return Tenant(name, created_at, weight, is_paused, policy, revoked_at, done_at, policies, restored_at)


def _key(row: Row) -> ApiKey:
    key_id, tenant, digest, scopes, *rest = row
    return ApiKey(key_id, tenant, digest, tuple(scopes.split()), *rest)


def _audited(row: Row) -> AuditedEntry:
    seq, at, actor, origin, action, target, tenant, details = row
    return AuditedEntry(seq, AuditEntry(at, actor, origin, action, target, tenant, msgspec.json.decode(details)))
