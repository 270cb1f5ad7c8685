"""API keys: made of randomness, shown once, and known afterwards by their ids alone."""

import secrets
import string
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coatcheck.core import limits
from coatcheck.core.api_keys import KEY_ID_CHARS, KEY_SECRET_CHARS, digest_of, make_key
from coatcheck.core.job import InstantMs
from coatcheck.core.jsontext import Json
from coatcheck.core.names import label_fault
from coatcheck.core.problems import FieldError, Refused
from coatcheck.core.scopes import CLIENT_SCOPES, Scope
from coatcheck.operators.actor import Actor
from coatcheck.operators.faults import check_number, invalid, no_tenant
from coatcheck.store.contract import Store
from coatcheck.store.controls import AddKey, ApiKey, RevokeKey, RotateKey

_ALPHABET: Final = string.ascii_letters + string.digits


class WantedKey(Struct, frozen=True):
    """What a new key is to be like. Without an instant it does not expire."""

    tenant: str
    label: str = ""
    scopes: frozenset[Scope] = CLIENT_SCOPES
    expires_at: InstantMs | None = None


class NewKey(Struct, frozen=True):
    """A key that was just made. `text` is the key itself, which nobody can ever read again."""

    key: ApiKey
    text: str


class Keys:
    """What an operator may do to keys."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, tenant: str) -> Sequence[ApiKey]:
        """The tenant's keys, oldest first, ended ones included.

        Raises:
            Refused: `not-found`.
        """
        if await self._store.find_tenant(tenant) is None:
            raise no_tenant(tenant)
        return await self._store.list_keys(tenant)

    async def find(self, key_id: str) -> ApiKey:
        """The key of this id.

        Raises:
            Refused: `not-found`.
        """
        key = await self._store.find_key(key_id)
        if key is None:
            raise Refused("not-found", "There is no key of this id.")
        return key

    async def create(self, wanted: WantedKey, actor: Actor) -> NewKey:
        """Make a key.

        Raises:
            Refused: `invalid-request`, `not-found`, or `conflict` where the tenant is revoked or has its most keys.
        """
        now = self._store.clock.now()
        _check(wanted, now)
        new = _make(wanted, now)
        key = new.key
        details: dict[str, Json] = {"label": key.label, "scopes": list(key.scopes), "expires_at": key.expires_at}
        entry = actor.entry(now, "key.create", key.key_id, key.tenant, details)
        if not await self._store.change_controls(AddKey(key), entry):
            raise await self._refusal(key.tenant)
        return new

    async def rotate(self, key_id: str, actor: Actor, grace_s: float = limits.KEY_GRACE_S_DEFAULT) -> NewKey:
        """Make a key like another one, which ends in `grace_s` seconds; both are good until then.

        If the old one was made to expire, the new one lives as long as that was made for, also where that was rotated
        before and ends soon.

        Raises:
            Refused: `invalid-request`, `not-found`, or `conflict` where the key has ended, or as with `create`.
        """
        check_number(grace_s, 0, limits.KEY_GRACE_S_MAX, "/grace_s")
        old, now = await self.find(key_id), self._store.clock.now()
        expires_at = None if old.lifetime_ms is None else now + old.lifetime_ms
        scopes = frozenset(map(Scope, old.scopes))
        new = _make(WantedKey(old.tenant, old.label, scopes, expires_at), now)
        until = now + round(grace_s * 1000)
        details: dict[str, Json] = {"old_key_id": old.key_id, "old_expires_at": until}
        entry = actor.entry(now, "key.rotate", new.key.key_id, old.tenant, details)
        if not await self._store.change_controls(RotateKey(new.key, old.key_id, until), entry):
            if not old.is_live(now):
                raise Refused("conflict", "The key has ended; make a new one.")
            raise await self._refusal(old.tenant)
        return new

    async def revoke(self, key_id: str, actor: Actor) -> ApiKey:
        """End a key now. One that was revoked before stays as it is.

        Raises:
            Refused: `not-found`.
        """
        key, now = await self.find(key_id), self._store.clock.now()
        entry = actor.entry(now, "key.revoke", key.key_id, key.tenant, {"label": key.label})
        await self._store.change_controls(RevokeKey(key_id, now), entry)
        return await self.find(key_id)

    async def _refusal(self, tenant_name: str) -> Refused:
        tenant = await self._store.find_tenant(tenant_name)
        if tenant is None:
            return no_tenant(tenant_name)
        if tenant.revocation is not None:
            return Refused("conflict", f"Tenant {tenant_name!r} is revoked and gets no new keys.")
        most = limits.KEYS_PER_TENANT_MAX
        return Refused("conflict", f"Tenant {tenant_name!r} has {most} live keys, the most it can have; revoke one.")


def _make(wanted: WantedKey, now: InstantMs) -> NewKey:
    key_id = _random_text(KEY_ID_CHARS)
    text = make_key(key_id, _random_text(KEY_SECRET_CHARS))
    scopes = tuple(scope for scope in Scope if scope in wanted.scopes)
    digest = digest_of(text.encode("ascii"))
    lifetime_ms = None if wanted.expires_at is None else wanted.expires_at - now
    key = ApiKey(key_id, wanted.tenant, digest, scopes, wanted.label, now, wanted.expires_at, lifetime_ms=lifetime_ms)
    return NewKey(key, text)


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _check(wanted: WantedKey, now: InstantMs) -> None:
    faults = []
    fault = label_fault(wanted.label)
    if fault is not None:
        faults.append(FieldError("/label", fault))
    if not wanted.scopes:
        faults.append(FieldError("/scopes", "A key needs one scope at least."))
    if wanted.expires_at is not None and not now < wanted.expires_at <= limits.INSTANT_MS_MAX:
        faults.append(FieldError("/expires_at", "This must be in the future."))
    if faults:
        raise invalid(*faults)
