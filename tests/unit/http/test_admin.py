"""The operators' API: who may use it, what it answers, and what it refuses."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from admin_desk import BEARER, OPERATOR_KEY, Desk, open_desk
from http_site import open_site

from coatcheck.core import limits
from coatcheck.http.admin_routes import admin_collections


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


async def test_without_a_configured_key_there_is_no_such_api(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        for path in ("/admin/tenants", "/admin/audit", "/admin/keys/x/revoke"):
            answer = await site.client.request("GET" if "revoke" not in path else "POST", path, headers=BEARER)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": OPERATOR_KEY},
        {"Authorization": f"Basic {OPERATOR_KEY}"},
        {"Authorization": f"Bearer {OPERATOR_KEY}k"},
        {"Authorization": f"Bearer {OPERATOR_KEY[1:]}"},
        {"Authorization": "Bearer " + "x" * 9_000},
        {"Authorization": "Bearer k\xe9y"},
    ],
    ids=str,
)
async def test_nobody_gets_in_without_it(desk: Desk, headers: Mapping[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    for method, path in (("GET", "/admin/tenants"), ("POST", "/admin/tenants"), ("DELETE", "/admin/limits/queued")):
        answer = await desk.site.client.request(method, path, headers=raw)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_two_credentials_are_none(desk: Desk) -> None:
    twice = [("authorization", BEARER["Authorization"])] * 2
    assert (await desk.site.client.get("/admin/tenants", headers=twice)).status_code == 401


async def test_every_route_is_in_the_reference(desk: Desk) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "admin-api.md").read_text("utf-8")
    names = {"tenants": "{name}", "operations": "{name}", "limits": "{limit}"}
    for collection in admin_collections(desk.site.services):
        path = f"/admin/{collection.name}"
        item = f"{path}/{names.get(collection.name, '{id}')}"
        routes = {path: collection.methods, item: collection.item}
        routes |= {f"{item}/{name}": methods for name, methods in collection.parts.items()}
        for route, methods in routes.items():
            for method in methods:
                assert f"`{method} {route}`" in page


class TestTenants:
    async def test_a_tenant_s_life(self, desk: Desk) -> None:
        made = await desk.ask("POST", "/tenants", 201, {"name": "acme", "weight": 2})
        assert (made["name"], made["weight"], made["paused"], made["revocation"]) == ("acme", 2.0, False, None)
        changed = await desk.ask("PATCH", "/tenants/acme", 200, {"weight": 0.5})
        assert (changed["weight"], changed["paused"]) == (0.5, False)
        assert (await desk.ask("POST", "/tenants/acme/pause"))["paused"] is True
        assert (await desk.ask("POST", "/tenants/acme/pause"))["paused"] is True
        assert (await desk.ask("POST", "/tenants/acme/resume", 200, {}))["paused"] is False
        assert await desk.ask("GET", "/tenants/acme") == changed
        assert await desk.actions() == ["tenant.set", "tenant.set", "tenant.set", "tenant.add"]

    async def test_the_url_of_a_new_tenant_leads_to_it(self, desk: Desk) -> None:
        name = "Łódź & Söhne, #1?"
        answer = await desk.site.client.post("/admin/tenants", json={"name": name}, headers=BEARER)
        assert answer.headers["location"] == f"/admin/tenants/{quote(name, safe='')}"
        assert (await desk.site.client.get(answer.headers["location"], headers=BEARER)).json()["name"] == name

    @pytest.mark.parametrize(
        "name",
        [
            *("", " ", "acme ", "\tacme", "a\x00b", "a\nb", "a\u200bb", "a\u202eb", "*", ".", "..", "a/b", "x" * 256),
            *("\ufb01x", "\uff21\uff23", "a\u00a0b", "e\u0301"),
        ],
    )
    async def test_names_that_could_be_taken_for_others_are_refused(self, desk: Desk, name: str) -> None:
        body = json.dumps({"name": name})
        answer = await desk.site.client.post(
            "/admin/tenants", content=body, headers={**BEARER, "Content-Type": "application/json"}
        )
        problem = answer.json()
        # U+0000 is no JSON that this service takes, wherever it stands.
        assert (answer.status_code, problem["code"]) in ((422, "invalid-request"), (400, "malformed-json"))
        if answer.status_code == 422:
            assert [error["pointer"] for error in problem["errors"]] == ["/name"]

    @pytest.mark.parametrize("name", ["%", "_", "q:", "a*", "default", "日本", "a b", "..a", "-", "x" * 255])
    async def test_all_other_names_are_names(self, desk: Desk, name: str) -> None:
        await desk.ask("POST", "/tenants", 201, {"name": name})
        assert (await desk.ask("GET", f"/tenants/{quote(name, safe='')}"))["name"] == name

    @pytest.mark.parametrize(
        ("body", "pointers"),
        [
            ({}, ["/name"]),
            ({"name": None}, ["/name"]),
            ({"name": 7}, ["/name"]),
            ({"name": "b", "weight": 0}, ["/weight"]),
            ({"name": "b", "weight": -1}, ["/weight"]),
            ({"name": "b", "weight": "2"}, ["/weight"]),
            ({"name": "b", "weight": True}, ["/weight"]),
            ({"name": "b", "weight": 1e9}, ["/weight"]),
            ({"name": "b", "pasued": True}, ["/pasued"]),
            ([], [""]),
            ("b", [""]),
        ],
        ids=repr,
    )
    async def test_faults_are_pointed_at(self, desk: Desk, body: Any, pointers: list[str]) -> None:
        assert await desk.refused("POST", "/tenants", 422, "invalid-request", body) == pointers
        assert await desk.actions() == []

    async def test_what_is_there_and_what_is_not(self, desk: Desk) -> None:
        await desk.ask("POST", "/tenants", 201, {"name": "acme"})
        await desk.refused("POST", "/tenants", 409, "conflict", {"name": "acme", "weight": 9})
        await desk.refused("GET", "/tenants/nobody", 404, "not-found")
        await desk.refused("PATCH", "/tenants/nobody", 404, "not-found", {"weight": 2})
        await desk.refused("POST", "/tenants/nobody/pause", 404, "not-found")
        await desk.refused("POST", "/tenants/acme/no-such-part", 404, "not-found")
        await desk.refused("PUT", "/tenants", 405, "method-not-allowed")
        await desk.refused("POST", "/tenants/acme/pause", 422, "invalid-request", {"for_s": 5})

    async def test_bodies_that_are_no_json(self, desk: Desk) -> None:
        async def post(content: bytes, content_type: str) -> httpx.Response:
            headers = {**BEARER, "Content-Type": content_type}
            return await desk.site.client.post("/admin/tenants", content=content, headers=headers)

        assert (await post(b'{"name": "a", "name": "b"}', "application/json")).json()["code"] == "malformed-json"
        assert (await post(b'{"name": ', "application/json")).json()["code"] == "malformed-json"
        assert (await post(b'{"name": "a"}', "text/plain")).json()["code"] == "unsupported-media-type"
        large = b'{"name": "' + b"x" * limits.ADMIN_BODY_BYTES_MAX + b'"}'
        assert (await post(large, "application/json")).json()["code"] == "payload-too-large"

    async def test_lists_come_in_pages(self, desk: Desk) -> None:
        for number in range(5):
            await desk.ask("POST", "/tenants", 201, {"name": f"tenant-{number}"})
        found: list[str] = []
        query = "?limit=2"
        while True:
            page = await desk.ask("GET", "/tenants" + query)
            found += [tenant["name"] for tenant in page["tenants"]]
            if page["next_cursor"] is None:
                break
            query = f"?limit=2&cursor={page['next_cursor']}"
        assert found == [f"tenant-{number}" for number in range(5)]

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("limit=0", "invalid-parameter"),
            ("limit=1e9", "invalid-parameter"),
            ("limit=201", "invalid-parameter"),
            ("limit=", "invalid-parameter"),
            ("limit=1&limit=2", "invalid-parameter"),
            ("offset=1", "invalid-parameter"),
            ("limit=%ff", "invalid-parameter"),
            ("cursor=", "invalid-cursor"),
            ("cursor=%21", "invalid-cursor"),
            ("cursor=AA", "invalid-cursor"),
            ("cursor=YQ==", "invalid-cursor"),
            ("cursor=" + "a" * 3_000, "invalid-cursor"),
        ],
    )
    async def test_parameters_that_cannot_be(self, desk: Desk, query: str, code: str) -> None:
        await desk.refused("GET", f"/tenants?{query}", 400, code)
        await desk.refused("GET", f"/audit?{query}", 400, code)


class TestOperations:
    async def test_an_operation_is_paused_drained_and_resumed(self, desk: Desk) -> None:
        name = next(iter(desk.site.services.app.operations))
        for verb, mode in (("pause", "paused"), ("pause", "paused"), ("drain", "draining"), ("resume", "open")):
            assert (await desk.ask("POST", f"/operations/{name}/{verb}"))["mode"] == mode
            assert (await desk.ask("GET", f"/operations/{name}"))["mode"] == mode
        assert await desk.actions() == ["operation.set"] * 3
        listed = (await desk.ask("GET", "/operations"))["operations"]
        assert [one["name"] for one in listed] == sorted(desk.site.services.app.operations)
        await desk.refused("POST", "/operations/no-such/pause", 404, "not-found")
        await desk.refused("POST", "/operations/No%20Such/pause", 422, "invalid-request")
        await desk.refused("GET", "/operations/no-such", 404, "not-found")

    async def test_one_that_drains_takes_no_work_and_says_so(self, desk: Desk) -> None:
        site = desk.site
        await site.accepted()
        await desk.ask("POST", "/operations/reports/drain")
        site.clock.advance(1)
        answer = await site.submit()
        assert (answer.status_code, answer.json()["code"]) == (503, "draining")
        assert int(answer.headers["retry-after"]) > 0
        assert len((await site.client.get("/v1/jobs")).json()["jobs"]) == 1
        await desk.ask("POST", "/operations/reports/resume")
        site.clock.advance(1)
        await site.accepted()

    async def test_one_that_is_paused_takes_work(self, desk: Desk) -> None:
        await desk.ask("POST", "/operations/reports/pause")
        desk.site.clock.advance(1)
        await desk.site.accepted()


class TestAudit:
    async def test_it_says_who_did_what_from_where(self, desk: Desk) -> None:
        await desk.ask("POST", "/tenants", 201, {"name": "acme"})
        await desk.ask("PATCH", "/tenants/acme", 200, {"weight": 3})
        newest, oldest = (await desk.ask("GET", "/audit"))["entries"]
        assert (newest["actor"], newest["origin"], newest["action"]) == ("operator", "127.0.0.1", "tenant.set")
        assert (newest["target"], newest["tenant"]) == ("acme", "acme")
        assert newest["details"] == {"weight": {"from": 1.0, "to": 3.0}}
        assert newest["seq"] > oldest["seq"]
        page = await desk.ask("GET", "/audit?limit=1&tenant=acme")
        assert page["entries"] == [newest]
        page = await desk.ask("GET", f"/audit?limit=1&tenant=acme&cursor={page['next_cursor']}")
        assert (page["entries"], page["next_cursor"]) == ([oldest], None)
        assert (await desk.ask("GET", "/audit?tenant=nobody"))["entries"] == []
