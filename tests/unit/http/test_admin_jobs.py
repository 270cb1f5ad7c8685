"""The operators' API over jobs: lists, dead letters, revocations, and what bad input is answered with."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admin_desk import BEARER, Desk, open_desk

from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import AuditEntry, RevokeTenant
from coatcheck.store.records import Tombstone

UNKNOWN = "job_" + "0" * 28


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


async def failed(desk: Desk, count: int = 1) -> list[str]:
    """The ids of new failed jobs, oldest first."""
    return [(await desk.site.failed()).rpartition("/")[2] for _ in range(count)]


async def listed(desk: Desk, path: str) -> list[str]:
    """The ids of all pages of a list."""
    ids: list[str] = []
    cursor = ""
    while True:
        page = await desk.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=2{cursor}")
        ids += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            return ids
        cursor = f"&cursor={page['next_cursor']}"


class TestJobs:
    async def test_lists_name_the_tenant_and_go_on(self, desk: Desk) -> None:
        ids = await failed(desk, 3)
        ids.append((await desk.site.succeeded()).rpartition("/")[2])
        assert await listed(desk, "/jobs") == ids[::-1]
        assert await listed(desk, "/jobs?status=failed") == ids[2::-1]
        assert await listed(desk, "/jobs?status=failed&category=timeout") == []
        assert await listed(desk, "/jobs?tenant=default&operation=reports") == ids[::-1]
        assert await listed(desk, "/jobs?tenant=other") == []
        first = (await desk.ask("GET", "/jobs?limit=1"))["jobs"][0]
        assert (first["tenant"], first["operation"], first["status"]) == ("default", "reports", "succeeded")
        assert await listed(desk, f"/jobs?created_until={first['created_at']}") == []
        assert await listed(desk, f"/jobs?created_since={first['created_at']}") == ids[::-1]

    async def test_an_operator_sees_what_a_client_does_not(self, desk: Desk) -> None:
        (job_id,) = await failed(desk)
        job = await desk.ask("GET", f"/jobs/{job_id}")
        assert job["error"]["operator_detail"] == "Traceback: secret"
        (attempt,) = job["attempts"]
        assert (attempt["outcome"], attempt["error"]["operator_detail"]) == ("failed", "Traceback: secret")
        assert "secret" not in (await desk.site.client.get(f"/reports/{job_id}")).text
        assert await desk.actions() == []

    async def test_that_a_payload_was_read_is_known(self, desk: Desk) -> None:
        (job_id,) = await failed(desk)
        answer = await desk.site.client.get(f"/admin/jobs/{job_id}/payload", headers=BEARER)
        assert (answer.json(), answer.headers["cache-control"]) == ({"branch": "leeds"}, "no-store")
        (entry,) = (await desk.ask("GET", "/audit"))["entries"]
        assert (entry["action"], entry["target"], entry["tenant"]) == ("job.read-payload", job_id, "default")

    async def test_cancel(self, desk: Desk) -> None:
        url = await desk.site.accepted()
        job_id = url.rpartition("/")[2]
        job = await desk.ask("POST", f"/jobs/{job_id}/cancel", 200, {"reason": "Ordered twice"})
        assert (job["status"], job["cancel_reason"]) == ("cancelled", "Ordered twice")
        assert (await desk.ask("POST", f"/jobs/{job_id}/cancel")) == job
        assert await desk.actions() == ["job.cancel"]
        running = (await desk.site.accepted()).rpartition("/")[2]
        await desk.site.claim()
        assert (await desk.ask("POST", f"/jobs/{running}/cancel", 202))["cancel_requested"] is True
        done = (await failed(desk))[0]
        await desk.refused("POST", f"/jobs/{done}/cancel", 409, "job-already-finished")

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            ("status=broken", "invalid-parameter"),
            ("category=bad", "invalid-parameter"),
            ("created_since=yesterday", "invalid-parameter"),
            ("created_since=60", "invalid-parameter"),
            ("finished_until=2026-13-01T00:00:00Z", "invalid-parameter"),
            ("tenant=", "invalid-parameter"),
            ("operation=%00", "invalid-parameter"),
            ("limit=0", "invalid-parameter"),
            ("limit=201", "invalid-parameter"),
            ("cursor=x", "invalid-cursor"),
            ("cursor=am9i", "invalid-cursor"),
            ("colour=red", "invalid-parameter"),
            ("status=failed&status=queued", "invalid-parameter"),
        ],
    )
    async def test_bad_parameters(self, desk: Desk, query: str, code: str) -> None:
        await desk.refused("GET", f"/jobs?{query}", 400, code)
        await desk.refused("GET", f"/dead-letters?{query}", 400, code)

    @pytest.mark.parametrize("item", [UNKNOWN, "x", "job_%00", "..%2f"])
    async def test_what_is_not_there(self, desk: Desk, item: str) -> None:
        for method, path in (("GET", ""), ("GET", "/payload"), ("POST", "/cancel")):
            await desk.refused(method, f"/jobs/{item}{path}", 404, "not-found")
        await desk.refused("POST", f"/dead-letters/{item}/redrive", 404, "not-found")

    async def test_what_is_gone(self, desk: Desk) -> None:
        (job_id,) = await failed(desk)
        await desk.site.client.delete(f"/reports/{job_id}")
        for method, path in (("GET", f"/jobs/{job_id}"), ("POST", f"/dead-letters/{job_id}/redrive")):
            await desk.refused(method, path, 410, "job-expired")

    async def test_a_reason_is_bounded(self, desk: Desk) -> None:
        job_id = (await desk.site.accepted()).rpartition("/")[2]
        reason = "x" * (limits.CANCEL_REASON_CHARS_MAX + 1)
        assert await desk.refused("POST", f"/jobs/{job_id}/cancel", 422, "invalid-request", {"reason": reason}) == [
            "/reason"
        ]
        await desk.refused("POST", f"/jobs/{job_id}/cancel", 422, "invalid-request", {"why": "x"})


class TestDeadLetters:
    async def test_one_is_redriven_once(self, desk: Desk) -> None:
        first, second = await failed(desk, 2)
        new = await desk.ask("POST", f"/dead-letters/{first}/redrive", 201)
        assert (new["redrive_of"], new["status"]) == (first, "queued")
        assert await desk.ask("POST", f"/dead-letters/{first}/redrive", 201) == new
        assert await listed(desk, "/dead-letters") == [second]
        assert await desk.actions() == ["job.redrive"]

    async def test_with_another_payload(self, desk: Desk) -> None:
        (job_id,) = await failed(desk)
        path = f"/dead-letters/{job_id}/redrive"
        assert await desk.refused("POST", path, 422, "invalid-request", {"branch": 7}) == ["/branch"]
        await desk.refused("POST", path, 413, "payload-too-large", {"branch": "x" * 3_000})
        assert await listed(desk, "/dead-letters") == [job_id]
        new = await desk.ask("POST", path, 201, {"branch": "york"})
        assert (await desk.site.claim()).payload == b'{"branch":"york"}'
        assert new["redrive_of"] == job_id

    async def test_only_what_failed(self, desk: Desk) -> None:
        done = (await desk.site.succeeded()).rpartition("/")[2]
        await desk.refused("POST", f"/dead-letters/{done}/redrive", 409, "job-not-failed")

    async def test_many_request_by_request(self, desk: Desk) -> None:
        ids = await failed(desk, 5)
        desk.site.clock.advance(1)
        wish: dict[str, Any] = {"operation": "reports", "limit": 2, "rate": 1_000}
        assert await desk.ask("POST", "/redrives", 200, {**wish, "dry_run": True}) == {"count": 5, "first": ids}
        redriven = 0
        while True:
            done = await desk.ask("POST", "/redrives", 200, wish)
            redriven += done["redriven"]
            if done["next_cursor"] is None:
                break
            wish |= {"cursor": done["next_cursor"], "created_until": done["created_until"]}
        assert redriven == 5
        assert await listed(desk, "/dead-letters") == []
        assert len(await listed(desk, "/jobs?status=queued")) == 5

    @pytest.mark.parametrize(
        ("wish", "pointers"),
        [
            ({}, ["/all"]),
            ({"created_until": "2001-01-01T00:00:00Z", "all": 1}, ["/all"]),
            ({"limit": 0}, ["/limit"]),
            ({"limit": 1_001}, ["/limit"]),
            ({"rate": 0}, ["/rate"]),
            ({"rate": 1e9}, ["/rate"]),
            ({"rate": 1, "limit": 100}, ["/rate"]),
            ({"category": "bad"}, ["/category"]),
            ({"created_since": "2h"}, ["/created_since"]),
            ({"tenant": 7}, ["/tenant"]),
            ({"status": "failed"}, ["/status"]),
            ({"dry_run": "yes"}, ["/dry_run"]),
        ],
        ids=repr,
    )
    async def test_bad_wishes(self, desk: Desk, wish: dict[str, Any], pointers: list[str]) -> None:
        await failed(desk)
        assert await desk.refused("POST", "/redrives", 422, "invalid-request", wish) == pointers
        assert len(await listed(desk, "/dead-letters")) == 1


class TestRevocations:
    async def _revoke(self, desk: Desk, policy: str | None) -> dict[str, Any]:
        await desk.ask("POST", "/tenants", 201, {"name": "default"})
        return await desk.ask("POST", "/tenants/default/revoke", 200, {} if policy is None else {"policy": policy})

    @pytest.mark.parametrize("policy", ["finish", "quarantine", "cancel", "erase"])
    async def test_no_new_work_under_any_policy(self, desk: Desk, policy: str) -> None:
        (job_id,) = await failed(desk)
        assert (await self._revoke(desk, policy))["revocation"] == policy
        desk.site.clock.advance(1)
        answer = await desk.site.submit()
        assert (answer.status_code, answer.json()["code"]) == (403, "tenant-suspended")
        await desk.refused("POST", f"/dead-letters/{job_id}/redrive", 409, "conflict")
        done = await desk.ask("POST", "/redrives", 200, {"rate": 1_000, "all": True})
        assert (done["redriven"], done["left"], done["next_cursor"]) == (0, 1, None)

    async def test_without_a_policy_the_setting_holds(self, desk: Desk) -> None:
        assert (await self._revoke(desk, None))["revocation"] == "quarantine"

    @pytest.mark.parametrize("policy", ["finish", "quarantine"])
    async def test_what_can_be_undone(self, desk: Desk, policy: str) -> None:
        await self._revoke(desk, policy)
        assert (await desk.ask("POST", "/tenants/default/restore"))["revocation"] is None
        assert (await desk.ask("POST", "/tenants/default/restore"))["revocation"] is None
        assert await desk.actions() == ["tenant.restore", "tenant.revoke", "tenant.add"]

    async def test_a_stricter_policy_takes_the_place_of_a_weaker_one(self, desk: Desk) -> None:
        await self._revoke(desk, "quarantine")
        path = "/tenants/default/revoke"
        assert (await desk.ask("POST", path, 200, {"policy": "quarantine"}))["revocation"] == "quarantine"
        assert (await desk.ask("POST", path, 200, {"policy": "cancel"}))["revocation"] == "cancel"
        await desk.refused("POST", path, 409, "conflict", {"policy": "finish"})
        await desk.refused("POST", "/tenants/default/restore", 409, "conflict")

    async def test_what_is_stricter_in_one_operation_only_cannot_be_weakened_either(self, desk: Desk) -> None:
        await desk.ask("POST", "/tenants", 201, {"name": "default"})
        now = desk.site.clock.now()
        revoked = RevokeTenant("default", Revocation.FINISH, now, {"reports": Revocation.CANCEL})
        assert await desk.site.store.change_controls(
            revoked, AuditEntry(now, "test", "here", "tenant.revoke", "default")
        )
        path = "/tenants/default/revoke"
        for policy in ("finish", "quarantine"):
            answer = await desk.ask("POST", path, 409, {"policy": policy})
            assert "with finish already, and with cancel in 'reports'" in answer["detail"]
        assert (await desk.ask("POST", path, 200, {"policy": "cancel"}))["revocation"] == "cancel"

    async def test_faults(self, desk: Desk) -> None:
        await desk.refused("POST", "/tenants/nobody/revoke", 404, "not-found", {"policy": "cancel"})
        await desk.refused("POST", "/tenants/nobody/restore", 404, "not-found")
        await desk.refused("GET", "/tenants/nobody/work", 404, "not-found")
        await desk.ask("POST", "/tenants", 201, {"name": "default"})
        for wish in ({"policy": "kill"}, {"policy": 1}, {"polciy": "finish"}):
            assert len(await desk.refused("POST", "/tenants/default/revoke", 422, "invalid-request", wish)) == 1

    async def test_how_far_it_is(self, desk: Desk) -> None:
        await failed(desk, 2)
        await desk.site.accepted()
        await self._revoke(desk, "erase")
        work = await desk.ask("GET", "/tenants/default/work")
        assert work == {"tenant": "default", "queued": 1, "running": 0, "finished": 2}
        policies = desk.site.services.app.policies
        await desk.site.store.carry_out_revocation("default", policies, desk.site.clock.now(), 100)
        work = await desk.ask("GET", "/tenants/default/work")
        assert work == {"tenant": "default", "queued": 0, "running": 0, "finished": 0}

    async def test_clients_of_an_erased_tenant_read_nothing(self, desk: Desk) -> None:
        (job_id,) = await failed(desk)
        await self._revoke(desk, "erase")
        now = desk.site.clock.now()
        await desk.site.store.carry_out_revocation("default", desk.site.services.app.policies, now, 100)
        found = await desk.site.store.find_job("default", job_id, now)
        assert isinstance(found, Tombstone)
        assert not isinstance(found, JobRecord)
