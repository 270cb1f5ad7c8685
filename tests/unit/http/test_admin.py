"""The operators' API: who may use it, what it answers, and what it refuses."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from http_site import Site, open_site

from coatcheck.core import limits
from coatcheck.core.api_keys import digest_of
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import AuditEntry, RevokeTenant

OPERATOR_KEY = "k" * 40
BEARER = {"Authorization": f"Bearer {OPERATOR_KEY}"}


class Desk:
    """An operator's requests. Each answer is looked through for what must never be shown."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.digests: list[str] = []

    async def ask(self, method: str, path: str, status: int = 200, body: Any = None) -> dict[str, Any]:
        """One request to /admin, which must be answered with this status."""
        answer = await self.site.client.request(method, f"/admin{path}", json=body, headers=BEARER)
        assert answer.status_code == status, answer.text
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


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_site(tmp_path, {"operator_key": OPERATOR_KEY}) as site:
        yield Desk(site)


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


class TestKeys:
    @pytest_asyncio.fixture
    async def desk(self, desk: Desk) -> Desk:
        await desk.ask("POST", "/tenants", 201, {"name": "acme"})
        return desk

    async def test_a_key_is_shown_once_and_kept_as_a_digest(self, desk: Desk) -> None:
        made = await desk.make_key(label="the till")
        key_id, text = made["id"], made.pop("key")
        assert text.startswith(f"cck_{key_id}_")
        stored = await desk.site.store.find_key(key_id)
        assert stored is not None
        assert stored.digest == digest_of(text.encode())
        assert await desk.ask("GET", f"/keys/{key_id}") == made
        assert (await desk.ask("GET", "/tenants/acme/keys"))["keys"] == [made]
        assert (made["label"], made["scopes"], made["live"]) == ("the till", ["submit", "read", "cancel"], True)
        assert (made["expires_at"], made["last_used_at"]) == (None, None)
        audit = json.dumps(await desk.ask("GET", "/audit"))
        assert text not in audit

    async def test_no_two_are_alike(self, desk: Desk) -> None:
        texts = {(await desk.make_key())["key"] for _ in range(8)}
        assert len(texts) == 8

    @pytest.mark.parametrize(
        ("wish", "pointers"),
        [
            ({"scopes": []}, ["/scopes"]),
            ({"scopes": ["read", "write"]}, ["/scopes/1"]),
            ({"scopes": ["read", "read"]}, ["/scopes/1"]),
            ({"scopes": "read"}, ["/scopes"]),
            ({"scopes": [None]}, ["/scopes/0"]),
            ({"label": "x" * 101}, ["/label"]),
            ({"label": " till"}, ["/label"]),
            ({"label": "a\u200bb"}, ["/label"]),
            ({"label": None}, ["/label"]),
            ({"expires_at": "tomorrow"}, ["/expires_at"]),
            ({"expires_at": "2001-01-01T00:00:00Z"}, ["/expires_at"]),
            ({"expires_at": "0"}, ["/expires_at"]),
            ({"expires_at": 5}, ["/expires_at"]),
            ({"key": ""}, ["/key"]),
            ({"key": "cck_mine"}, ["/key"]),
        ],
        ids=repr,
    )
    async def test_wishes_that_cannot_be(self, desk: Desk, wish: Any, pointers: list[str]) -> None:
        assert await desk.refused("POST", "/tenants/acme/keys", 422, "invalid-request", wish) == pointers
        assert (await desk.ask("GET", "/tenants/acme/keys"))["keys"] == []

    async def test_a_key_ends_when_it_is_revoked(self, desk: Desk) -> None:
        key_id = (await desk.make_key())["id"]
        revoked = await desk.ask("POST", f"/keys/{key_id}/revoke")
        assert (revoked["live"], revoked["revoked_at"] is not None) == (False, True)
        assert await desk.ask("POST", f"/keys/{key_id}/revoke") == revoked
        assert (await desk.actions())[:2] == ["key.revoke", "key.create"]

    async def test_two_overlap_in_a_rotation(self, desk: Desk) -> None:
        old = await desk.make_key(label="till", scopes=["read"], expires_at="86400")
        desk.site.clock.advance(3_600)
        new = await desk.ask("POST", f"/keys/{old['id']}/rotate", 201, {"grace_s": 60})
        assert (new["label"], new["scopes"]) == ("till", ["read"])
        assert new["id"] != old["id"]
        both = (await desk.ask("GET", "/tenants/acme/keys"))["keys"]
        assert [key["live"] for key in both] == [True, True]
        desk.site.clock.advance(60)
        both = (await desk.ask("GET", "/tenants/acme/keys"))["keys"]
        assert [key["live"] for key in both] == [False, True]
        await desk.refused("POST", f"/keys/{old['id']}/rotate", 409, "conflict")
        desk.site.clock.advance(86_400 - 61)
        assert (await desk.ask("GET", f"/keys/{new['id']}"))["live"] is True
        desk.site.clock.advance(1)
        assert (await desk.ask("GET", f"/keys/{new['id']}"))["live"] is False

    @pytest.mark.parametrize("grace_s", [-1, 1e9, "60", None])
    async def test_a_grace_has_bounds(self, desk: Desk, grace_s: Any) -> None:
        key_id = (await desk.make_key())["id"]
        body = {"grace_s": grace_s}
        assert await desk.refused("POST", f"/keys/{key_id}/rotate", 422, "invalid-request", body) == ["/grace_s"]

    async def test_who_gets_no_key(self, desk: Desk) -> None:
        await desk.refused("POST", "/tenants/nobody/keys", 404, "not-found", {})
        await desk.refused("GET", "/tenants/nobody/keys", 404, "not-found")
        for path in ("/keys/no-key", "/keys/no%00key"):
            await desk.refused("GET", path, 404, "not-found")
            await desk.refused("POST", path + "/revoke", 404, "not-found")
            await desk.refused("POST", path + "/rotate", 404, "not-found")
        for _ in range(limits.KEYS_PER_TENANT_MAX):
            await desk.make_key()
        await desk.refused("POST", "/tenants/acme/keys", 409, "conflict")
        entry = AuditEntry(desk.site.clock.now(), "test", "here", "tenant.revoke", "acme")
        revoked = RevokeTenant("acme", Revocation.FINISH, desk.site.clock.now())
        assert await desk.site.store.change_controls(revoked, entry)
        await desk.refused("POST", "/tenants/acme/keys", 409, "conflict")


class TestLimits:
    async def test_0_and_absent_are_both_said(self, desk: Desk) -> None:
        path = "/limits/queued?tenant=acme"
        limit = await desk.ask("GET", path)
        assert (limit["value"], limit["meaning"], limit["origin"]) == (None, "unlimited", "default")
        limit = await desk.ask("PUT", path, 200, {"value": 0})
        assert (limit["value"], limit["meaning"], limit["origin"]) == (0, "none allowed", "override")
        limit = await desk.ask("PUT", path, 200, {"value": 2500})
        assert (limit["value"], limit["meaning"], limit["origin"]) == (2500, "at most 2,500", "override")
        limit = await desk.ask("PUT", path, 200, {"value": None})
        assert (limit["value"], limit["meaning"], limit["origin"]) == (None, "unlimited", "override")
        assert await desk.ask("GET", path) == limit
        limit = await desk.ask("DELETE", path)
        assert (limit["value"], limit["meaning"], limit["origin"]) == (None, "unlimited", "default")
        assert await desk.ask("DELETE", path) == limit
        assert await desk.actions() == ["limit.clear", "limit.set", "limit.set", "limit.set"]

    async def test_each_says_where_it_comes_from(self, tmp_path: Path) -> None:
        async with open_site(tmp_path, {"operator_key": OPERATOR_KEY, "tenant_submit_rate": 5}) as site:
            desk = Desk(site)
            limit = await desk.ask("GET", "/limits/submit_rate?tenant=*")
            assert (limit["value"], limit["origin"]) == (5, "setting")
            await desk.ask("PUT", "/limits/submit_rate?tenant=*", 200, {"value": 9})
            mine = await desk.ask("PUT", "/limits/submit_rate?tenant=acme&operation=reports", 200, {"value": 1.5})
            listed = (await desk.ask("GET", "/limits?tenant=acme&operation=reports"))["limits"]
            set_here = [limit for limit in listed if limit["origin"] != "default"]
            assert mine in set_here
            assert {(limit["tenant"], limit["operation"], limit["value"]) for limit in set_here} == {
                ("acme", "reports", 1.5),
                ("*", "", 9),
            }
            everybody = (await desk.ask("GET", "/limits"))["limits"]
            assert mine in everybody

    @pytest.mark.parametrize(
        ("path", "value", "pointers"),
        [
            ("/limits/queued", -1, ["/value"]),
            ("/limits/queued", 1.5, ["/value"]),
            ("/limits/queued", "5", ["/value"]),
            ("/limits/queued", True, ["/value"]),
            ("/limits/queued", 1e300, ["/value"]),
            ("/limits/no-such", 5, ["/name"]),
            ("/limits/queued?tenant=a%20", 5, ["/tenant"]),
        ],
    )
    async def test_what_cannot_be(self, desk: Desk, path: str, value: Any, pointers: list[str]) -> None:
        assert await desk.refused("PUT", path, 422, "invalid-request", {"value": value}) == pointers

    async def test_more_that_cannot_be(self, desk: Desk) -> None:
        assert await desk.refused("PUT", "/limits/queued", 422, "invalid-request", {}) == ["/value"]
        await desk.refused("PUT", "/limits/queued?operation=no-such", 404, "not-found", {"value": 5})
        await desk.refused("PUT", "/limits/queued?tenants=acme", 400, "invalid-parameter", {"value": 5})
        assert await desk.actions() == []


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
