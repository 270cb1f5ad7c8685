"""A site whose clients must show who they are: two tenants with their keys, and a way to change both."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from http_site import Site, open_site

from coatcheck.core.api_keys import digest_of, make_key
from coatcheck.core.job import InstantMs
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import (
    AddKey,
    AddTenant,
    ApiKey,
    AuditEntry,
    ControlChange,
    RestoreTenant,
    RevokeKey,
    RevokeTenant,
    Tenant,
)

ALL_SCOPES = ("submit", "read", "cancel")
SIGNING_KEY = "a-signing-key-that-is-only-for-the-tests"
FORGOTTEN_S = 1.0
"""After so long no process acts on what it knew before."""


@dataclass
class GuardedSite:
    """The site, and what an operator would do to it. `key` belongs to the tenant `ours`, `other_key` to `theirs`."""

    site: Site
    key: str = ""
    other_key: str = ""
    keys_made: int = 0

    @property
    def client(self) -> httpx.AsyncClient:
        return self.site.client

    async def change(self, change: ControlChange) -> None:
        entry = AuditEntry(self.site.clock.now(), "test", "here", "change", "it")
        assert await self.site.store.change_controls(change, entry)

    async def add_tenant(self, name: str) -> None:
        await self.change(AddTenant(Tenant(name, self.site.clock.now())))

    async def add_key(
        self, tenant: str = "ours", scopes: tuple[str, ...] = ALL_SCOPES, expires_at: InstantMs | None = None
    ) -> str:
        self.keys_made += 1
        key_id = f"{self.keys_made:012d}"
        key = make_key(key_id, f"{self.keys_made:043d}")
        now = self.site.clock.now()
        await self.change(AddKey(ApiKey(key_id, tenant, digest_of(key.encode()), scopes, "", now, expires_at)))
        return key

    async def revoke_key(self, key: str) -> None:
        await self.change(RevokeKey(key[4:16], self.site.clock.now()))

    async def revoke_tenant(self, name: str, policy: Revocation) -> None:
        await self.change(RevokeTenant(name, policy, self.site.clock.now()))

    async def restore_tenant(self, name: str) -> None:
        await self.change(RestoreTenant(name, self.site.clock.now()))

    def forget(self) -> None:
        """Let the time pass after which a change is in force."""
        self.site.clock.advance(FORGOTTEN_S)

    async def get(self, url: str, key: str | None = None, **headers: str) -> httpx.Response:
        return await self.client.get(url, headers=bearer(key or self.key) | named(headers))

    async def submit(self, key: str | None = None, **headers: str) -> httpx.Response:
        given = bearer(key or self.key) | named(headers)
        return await self.client.post("/reports", json={"branch": "leeds"}, headers=given)

    async def accepted(self, key: str | None = None) -> str:
        """The URL of a new job."""
        response = await self.submit(key)
        assert response.status_code == 202, response.text
        return str(response.headers["location"])


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def open_guarded_site(
    folder: Path, settings: Mapping[str, Any] | None = None, is_new: bool = True
) -> AsyncIterator[GuardedSite]:
    """`is_new`: make the tenants and their keys; else another process has done that."""
    given = {"auth": "keys", "signing_keys": SIGNING_KEY, **(settings or {})}
    async with open_site(folder, given) as site:
        guarded = GuardedSite(site)
        if is_new:
            for tenant in ("ours", "theirs"):
                await guarded.add_tenant(tenant)
            guarded.key, guarded.other_key = await guarded.add_key(), await guarded.add_key("theirs")
        yield guarded
