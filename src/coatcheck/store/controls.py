"""Tenants, their keys, limits and modes, and the audit log: the part of the store that operators change.

Every change is one transaction that also writes its audit entry and raises the version of the controls, and gives the
hint CONTROLS after its commit; a change that finds nothing to change writes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.jsontext import Json
from coatcheck.core.tenancy import (
    Controls,
    LimitOverride,
    OperationMode,
    Revocation,
    TenantControl,
    compare_revocations,
)


class Tenant(Struct, frozen=True):
    """An account. `revocation_done_at` is when nothing was left to do of its revocation.

    `by_operation`: policies that stand in the place of `revocation` in single operations. `restored_at`: when it was
    last restored; its jobs' queue limits count from then.
    """

    name: str
    created_at: InstantMs
    weight: float = 1.0
    is_paused: bool = False
    revocation: Revocation | None = None
    revoked_at: InstantMs | None = None
    revocation_done_at: InstantMs | None = None
    by_operation: Mapping[str, Revocation] = {}
    restored_at: InstantMs | None = None


class ApiKey(Struct, frozen=True):
    """A tenant's key. The key itself is nowhere: `digest` is the SHA-256 of it, `key_id` the part it is known by.

    `lifetime_ms`: how long it was made for, which a rotation leaves as it is; None: it does not end by itself.
    """

    key_id: str
    tenant: str
    digest: str
    scopes: tuple[str, ...]
    label: str
    created_at: InstantMs
    expires_at: InstantMs | None = None
    revoked_at: InstantMs | None = None
    last_used_at: InstantMs | None = None
    lifetime_ms: int | None = None

    def is_live(self, now: InstantMs) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


class AuditEntry(Struct, frozen=True):
    """What an operator did: who (`actor`), from where (`origin`), what to what, with `details` as JSON."""

    at: InstantMs
    actor: str
    origin: str
    action: str
    target: str
    tenant: str | None = None
    details: Mapping[str, Json] = {}


class AuditedEntry(Struct, frozen=True):
    """An entry as it stands in the log; `seq` rises."""

    seq: int
    entry: AuditEntry


class AddTenant(Struct, frozen=True):
    """A new tenant. Nothing to change: there is one of that name."""

    tenant: Tenant


class SetTenant(Struct, frozen=True):
    """What is not None is set. Nothing to change: there is no such tenant, or it is like this."""

    name: str
    weight: float | None = None
    is_paused: bool | None = None


class RevokeTenant(Struct, frozen=True):
    """Begin a revocation, or take a stricter one. Nothing to change: no such tenant, as strict already everywhere, or
    stricter anywhere.

    `by_operation`: what holds in single operations instead.
    """

    name: str
    policy: Revocation
    at: InstantMs
    by_operation: Mapping[str, Revocation] = {}

    def may_replace(self, held: Tenant) -> bool:
        """Whether it is stricter than what holds of the tenant in one operation at least, and weaker in none."""
        steps = self.compare(held)
        return min(steps) >= 0 and max(steps) > 0

    def compare(self, held: Tenant) -> Sequence[int]:
        """See `core.tenancy.compare_revocations`."""
        wanted = TenantControl(self.name, revocation=self.policy, by_operation=self.by_operation)
        control = TenantControl(held.name, revocation=held.revocation, by_operation=held.by_operation)
        return compare_revocations(control, wanted)


class RestoreTenant(Struct, frozen=True):
    """Undo `finish` or `quarantine`. Nothing to change: not revoked, or past undoing."""

    name: str
    at: InstantMs


class AddKey(Struct, frozen=True):
    """A new key. Nothing to change: the tenant is not there or revoked, or has KEYS_PER_TENANT_MAX live keys."""

    key: ApiKey


class RotateKey(Struct, frozen=True):
    """A new key beside an old one of the same tenant, which expires soon; the old one does not count as live.

    Nothing to change: as with AddKey, or the old key is not one of the tenant's that are live.
    """

    key: ApiKey
    old_key_id: str
    old_expires_at: InstantMs


class RevokeKey(Struct, frozen=True):
    """Nothing to change: no such key, or revoked before."""

    key_id: str
    at: InstantMs


class SetLimit(Struct, frozen=True):
    """Set a limit at run time. Nothing to change: it is set like this, or LIMITS_SET_MAX others are."""

    override: LimitOverride


class ClearLimit(Struct, frozen=True):
    """Let the default hold again. Nothing to change: it was not set at run time."""

    name: str
    tenant: str
    operation: str


class SetMode(Struct, frozen=True):
    """Nothing to change: the operation has this mode."""

    operation: str
    mode: OperationMode


TenantChange: TypeAlias = AddTenant | SetTenant | RevokeTenant | RestoreTenant
KeyChange: TypeAlias = AddKey | RotateKey | RevokeKey
LimitChange: TypeAlias = SetLimit | ClearLimit
ControlChange: TypeAlias = TenantChange | KeyChange | LimitChange | SetMode


class ControlStore(Protocol):
    """For identity, admission and operators. Any verb may raise StoreUnavailable."""

    async def read_controls_version(self) -> int:
        """The version of the controls, 0 where nothing was ever changed."""
        ...

    async def read_controls(self) -> Controls:
        """All controls at one moment."""
        ...

    async def change_controls(self, change: ControlChange, entry: AuditEntry) -> bool:
        """Make a change and write its audit entry; whether there was anything to change."""
        ...

    async def find_tenant(self, name: str) -> Tenant | None:
        """The tenant of this name."""
        ...

    async def list_tenants(self, limit: int, after: str | None = None) -> Sequence[Tenant]:
        """Tenants by name, those after `after`."""
        ...

    async def find_key(self, key_id: str) -> ApiKey | None:
        """The key of this id, revoked and expired ones included."""
        ...

    async def list_keys(self, tenant: str) -> Sequence[ApiKey]:
        """The tenant's newest KEYS_LISTED_MAX keys, oldest first, ended ones included until they are pruned."""
        ...

    async def touch_keys(self, used: Mapping[str, InstantMs]) -> None:
        """Note when keys were last used. An earlier time changes nothing, and neither version nor audit is written."""
        ...

    async def read_audit(
        self, limit: int, before: int | None = None, tenant: str | None = None
    ) -> Sequence[AuditedEntry]:
        """The newest entries before `before`, newest first; of one tenant, or all."""
        ...
