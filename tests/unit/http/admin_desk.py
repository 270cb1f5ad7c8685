"""An operator who asks over HTTP, for tests of the admin API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from admin_contract import AdminContract
from http_site import Site, open_site

from coatcheck.core.api_keys import digest_of

OPERATOR_KEY = "k" * 40
BEARER = {"Authorization": f"Bearer {OPERATOR_KEY}"}


class Desk:
    """An operator's requests. Each answer has to fit the document, and to show nothing that must never be shown."""

    def __init__(self, site: Site, contract: AdminContract) -> None:
        self.site = site
        self.contract = contract
        self.digests: list[str] = []

    async def ask(self, method: str, path: str, status: int = 200, body: Any = None) -> dict[str, Any]:
        """One request to /admin, which must be answered with this status."""
        answer = await self.site.client.request(method, f"/admin{path}", json=body, headers=BEARER)
        assert answer.status_code == status, answer.text
        self.contract.check(answer, body)
        assert not [digest for digest in self.digests if digest in answer.text]
        if status < 400:
            assert answer.headers["cache-control"] == "no-store"
        fields: dict[str, Any] = answer.json()
        return fields

    async def refused(self, method: str, path: str, status: int, code: str, body: Any = None) -> list[str]:
        """One request that is refused; the pointers of what is wrong with it."""
        problem = await self.ask(method, path, status, body)
        assert (problem["code"], problem["status"]) == (code, status)
        return [error["pointer"] for error in problem.get("errors", ())]

    async def make_key(self, tenant: str = "acme", **wish: Any) -> dict[str, Any]:
        made = await self.ask("POST", f"/tenants/{tenant}/keys", 201, wish)
        self.digests.append(digest_of(made["key"].encode()))
        return made

    async def actions(self) -> list[str]:
        return [entry["action"] for entry in (await self.ask("GET", "/audit"))["entries"]]


@asynccontextmanager
async def open_desk(folder: Path, **settings: Any) -> AsyncIterator[Desk]:
    async with open_site(folder, {"operator_key": OPERATOR_KEY, **settings}) as site:
        document = await site.client.get("/admin/openapi.json", headers=BEARER)
        yield Desk(site, AdminContract(document.json()))
