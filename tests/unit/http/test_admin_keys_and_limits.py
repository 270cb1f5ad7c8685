"""Keys and limits over the operators' API."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admin_desk import Desk, open_desk
from http_site import submission_of

from coatcheck.core import limits
from coatcheck.core.api_keys import digest_of
from coatcheck.core.tenancy import LimitOverride, Revocation
from coatcheck.store.controls import AuditEntry, RevokeTenant, SetLimit
from coatcheck.store.records import Accepted


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


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
            ({"expires_at": -5}, ["/expires_at"]),
            ({"expires_at": 1e300}, ["/expires_at"]),
            ({"expires_at": True}, ["/expires_at"] * 2),
            ({"key": ""}, ["/key"]),
            ({"key": "cck_mine"}, ["/key"]),
        ],
        ids=repr,
    )
    async def test_wishes_that_cannot_be(self, desk: Desk, wish: Any, pointers: list[str]) -> None:
        assert await desk.refused("POST", "/tenants/acme/keys", 422, "invalid-request", wish) == pointers
        assert (await desk.ask("GET", "/tenants/acme/keys"))["keys"] == []

    async def test_seconds_from_now_are_a_number_or_a_text(self, desk: Desk) -> None:
        ends = [(await desk.make_key(expires_at=seconds))["expires_at"] for seconds in (60, 60.0, "60")]
        assert len({*ends}) == 1

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

    @pytest.mark.parametrize("expires_at", ["86400", None])
    async def test_a_key_that_is_rotated_twice_has_successors_that_live_as_long(
        self, desk: Desk, expires_at: str | None
    ) -> None:
        old = await desk.make_key(**({} if expires_at is None else {"expires_at": expires_at}))
        ends = []
        for _ in range(2):
            new = await desk.ask("POST", f"/keys/{old['id']}/rotate", 201, {"grace_s": 60})
            again = await desk.ask("POST", f"/keys/{new['id']}/rotate", 201, {"grace_s": 0})
            ends += [new["expires_at"], again["expires_at"]]
        assert set(ends) == {old["expires_at"]}

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
        async with open_desk(tmp_path, tenant_submit_rate=5) as desk:
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
        path = "/limits/queued?operation=no-such"
        assert await desk.refused("PUT", path, 422, "invalid-request", {"value": 5}) == ["/operation"]
        for method in ("GET", "DELETE"):
            await desk.refused(method, path, 404, "not-found")
        await desk.refused("PUT", "/limits/queued?tenants=acme", 400, "invalid-parameter", {"value": 5})
        assert await desk.actions() == []

    async def test_what_was_set_for_an_operation_that_is_gone_can_be_seen_and_cleared(self, desk: Desk) -> None:
        store, path = desk.site.store, "/limits/queued?operation=retired"
        entry = AuditEntry(store.clock.now(), "op", "cli", "limit.set", "queued")
        await store.change_controls(SetLimit(LimitOverride("queued", "", "retired", 5)), entry)
        assert (await desk.ask("GET", path))["value"] == 5
        assert await desk.refused("PUT", path, 422, "invalid-request", {"value": 6}) == ["/operation"]
        assert (await desk.ask("DELETE", path))["origin"] == "default"
        await desk.refused("GET", path, 404, "not-found")

    async def test_an_operation_that_is_gone_has_limits_while_it_has_work(self, desk: Desk) -> None:
        store = desk.site.store
        assert isinstance(await store.accept_job(submission_of("retired", store.clock.now())), Accepted)
        limit = await desk.ask("PUT", "/limits/running?operation=retired", 200, {"value": 0})
        assert (limit["operation"], limit["meaning"]) == ("retired", "none allowed")
