"""POST to a collection: acceptance, keys, refusals, waiting."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_site import Connection, Site, open_site

from coatcheck.core.problems import PROBLEMS
from coatcheck.store.errors import StoreUnavailable


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


JSON = {"content-type": "application/json"}
BODY = b'{"branch": "leeds"}'


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["type"] == f"/problems/{code}"
    assert problem["title"] == PROBLEMS[code].title
    assert problem["correlation_id"] == response.headers["x-correlation-id"]
    return problem


async def test_202_with_its_headers_and_body(site: Site) -> None:
    response = await site.submit(X_Correlation_ID="order-17")
    assert response.status_code == 202
    job = response.json()
    url = f"/reports/{job['id']}"
    assert response.headers["location"] == url
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert response.headers["x-correlation-id"] == "order-17"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "idempotent-replayed" not in response.headers
    assert "preference-applied" not in response.headers
    assert job == {
        "id": job["id"],
        "operation": "reports",
        "status": "queued",
        "done": False,
        "version": 1,
        "attempt": 0,
        "max_attempts": 5,
        "progress": None,
        "created_at": "2026-01-05T08:00:00.000Z",
        "started_at": None,
        "finished_at": None,
        "updated_at": "2026-01-05T08:00:00.000Z",
        "available_at": "2026-01-05T08:00:00.000Z",
        "deadline_at": None,
        "expires_at": None,
        "result_expires_at": None,
        "cancel_requested": False,
        "cancel_reason": None,
        "error": None,
        "correlation_id": "order-17",
        "redrive_of": None,
        "redriven_as": None,
        "status_url": url,
        "result_url": f"{url}/result",
        "cancel_url": f"{url}/cancel",
    }


async def test_start_deadline_and_priority(site: Site) -> None:
    response = await site.submit(Job_Start_After="60", Job_Deadline="2026-01-05T09:00:00Z", Job_Priority="9")
    job = response.json()
    assert job["available_at"] == "2026-01-05T08:01:00.000Z"
    assert job["deadline_at"] == "2026-01-05T09:00:00.000Z"
    assert int(response.headers["retry-after"]) >= 48


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Idempotency-Key", ""),
        ("Idempotency-Key", '""'),
        ("Idempotency-Key", "two words"),
        ("Idempotency-Key", "a" * 256),
        ("Job-Start-After", "tomorrow"),
        ("Job-Start-After", "2026-01-05T08:00:00"),
        ("Job-Start-After", "99999999999"),
        ("Job-Deadline", "0"),
        ("Job-Deadline", "2020-01-01T00:00:00Z"),
        ("Job-Priority", "10"),
        ("Job-Priority", "-1"),
        ("Job-Priority", ""),
    ],
)
async def test_invalid_headers_are_named(site: Site, name: str, value: str) -> None:
    response = await site.client.post("/reports", content=BODY, headers={**JSON, name: value})
    assert name in str(assert_problem(response, 400, "invalid-header")["detail"])


async def test_a_repetition_finds_its_job_after_the_deadline(site: Site) -> None:
    headers = {"Idempotency_Key": "k1", "Job_Deadline": "2026-01-05T08:00:10Z"}
    first = await site.submit(**headers)
    site.clock.advance(60)
    second = await site.submit(**headers)
    assert (first.status_code, second.status_code) == (202, 202)
    assert second.headers["location"] == first.headers["location"]
    assert_problem(await site.submit(**{**headers, "Idempotency_Key": "k2"}), 400, "invalid-header")


async def test_headers_that_stand_twice(site: Site) -> None:
    for name in ("idempotency-key", "job-start-after", "job-deadline", "job-priority"):
        headers = [("content-type", "application/json"), (name, "5"), (name, "5")]
        assert_problem(await site.client.post("/reports", content=BODY, headers=headers), 400, "invalid-header")
    twice = [("content-type", "application/json")] * 2
    assert_problem(await site.client.post("/reports", content=BODY, headers=twice), 415, "unsupported-media-type")


async def test_one_key_one_job_in_every_state(site: Site) -> None:
    first = await site.submit(Idempotency_Key="k1", X_Correlation_ID="first")
    second = await site.submit(Idempotency_Key='"k1"', X_Correlation_ID="second")
    assert second.status_code == 202
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["location"] == first.headers["location"]
    assert second.headers["x-correlation-id"] == "second"
    assert second.json()["correlation_id"] == "first"
    claim = await site.claim()
    assert (await site.submit(Idempotency_Key="k1")).json()["status"] == "running"
    await site.finish(claim)
    replayed = await site.submit(Idempotency_Key="k1")
    assert (replayed.status_code, replayed.json()["status"]) == (202, "succeeded")
    assert "retry-after" not in replayed.headers
    waited = await site.submit(Idempotency_Key="k1", Prefer="wait=5")
    assert (waited.status_code, waited.headers["idempotent-replayed"]) == (200, "true")
    assert replayed.json()["result"] == waited.json()["result"] == {"titles": 500}


async def test_other_body_same_key(site: Site) -> None:
    await site.submit(Idempotency_Key="k1")
    response = await site.submit({"branch": "york"}, Idempotency_Key="k1")
    assert_problem(response, 422, "idempotency-key-reused")
    assert site.metrics.read("key_conflicts", operation="reports") == 1


async def test_key_of_an_expired_job(site: Site) -> None:
    response = await site.submit(Idempotency_Key="k1")
    url = response.headers["location"]
    await site.finish(await site.claim())
    assert (await site.client.delete(url)).status_code == 204
    problem = assert_problem(await site.submit(Idempotency_Key="k1"), 409, "job-expired")
    assert problem["status_url"] == url
    assert url in str(problem["detail"])


async def test_refused_requests_use_up_no_key(site: Site) -> None:
    assert_problem(await site.submit({"branch": "?"}, Idempotency_Key="k1"), 422, "invalid-request")
    assert (await site.submit(Idempotency_Key="k1")).status_code == 202


async def test_required_key(site: Site) -> None:
    response = await site.client.post("/v1/strict", json={})
    assert_problem(response, 400, "idempotency-key-required")


async def test_bodies_that_are_refused(site: Site) -> None:
    post = site.client.post
    assert_problem(await post("/reports", content=b"", headers=JSON), 400, "malformed-json")
    assert_problem(await post("/reports", content=b"{", headers=JSON), 400, "malformed-json")
    assert_problem(await post("/reports", content=BODY), 415, "unsupported-media-type")
    assert_problem(
        await post("/reports", content=BODY, headers={"content-type": "text/plain"}), 415, "unsupported-media-type"
    )
    invalid = assert_problem(await post("/reports", json={"format": "pdf"}), 422, "invalid-request")
    assert [error["pointer"] for error in invalid["errors"]] == ["/branch", "/format"]
    response = await post("/reports", content=BODY, headers={**JSON, "accept": "text/html"})
    assert_problem(response, 406, "not-acceptable")
    assert site.metrics.read("refused", operation="reports", code="malformed-json") == 2


async def test_body_in_chunks(site: Site) -> None:
    connection = Connection(site, "POST", "/reports", {**JSON, "transfer-encoding": "chunked"})
    for part in (b'{"branch"', b': "leeds"', b"}"):
        connection.send_body(part, has_more=True)
    connection.send_body(b"")
    assert (await connection.next())["status"] == 202
    await connection.end()


async def test_too_large_with_a_length_is_drained(site: Site) -> None:
    connection = Connection(site, "POST", "/reports", {**JSON, "content-length": "4000"})
    connection.send_body(b" " * 2000, has_more=True)
    connection.send_body(b" " * 2000)
    start = await connection.next()
    assert start["status"] == 413
    assert (b"connection", b"close") not in start["headers"]
    await connection.end()


async def test_too_large_in_chunks_is_drained_to_a_bound(site: Site) -> None:
    connection = Connection(site, "POST", "/reports", {**JSON, "transfer-encoding": "chunked"})
    for _ in range(10):
        connection.send_body(b" " * 1024 * 1024, has_more=True)
    start = await connection.next()
    assert start["status"] == 413
    assert (b"connection", b"close") in start["headers"]
    await connection.end()


async def test_too_large_before_leave_to_send_is_refused_unread(site: Site) -> None:
    headers = {**JSON, "content-length": "9000", "expect": "100-continue"}
    start = await Connection(site, "POST", "/reports", headers).next()
    assert start["status"] == 413
    assert (b"connection", b"close") in start["headers"]


async def test_client_that_leaves_in_its_body_leaves_nothing(site: Site) -> None:
    connection = Connection(site, "POST", "/reports", {**JSON, "content-length": "40"})
    connection.send_body(b'{"branch"', has_more=True)
    connection.leave()
    await connection.end()
    assert not connection.has_answer
    assert (await site.client.get("/reports")).json() == {"jobs": [], "next_cursor": None}


async def test_wait_sees_the_end(site: Site) -> None:
    answer = asyncio.ensure_future(site.submit(Prefer="respond-async, wait=20"))
    while not (await site.client.get("/reports")).json()["jobs"]:
        pass
    await site.finish(await site.claim())
    response = await answer
    assert (response.status_code, response.json()["status"]) == (200, "succeeded")
    assert response.headers["preference-applied"] == "wait=20"
    assert response.headers["location"] == response.json()["status_url"]
    assert "sunset" in response.headers


async def test_wait_that_runs_out_and_respond_async(site: Site) -> None:
    response = await site.submit(Prefer="wait=0, respond-async")
    assert response.status_code == 202
    assert response.headers["preference-applied"] == "respond-async, wait=0"
    response = await site.submit(Prefer="respond-async")
    assert response.headers["preference-applied"] == "respond-async"


async def test_wait_ends_with_the_client_and_at_a_drain(site: Site) -> None:
    connection = Connection(site, "POST", "/reports", {**JSON, "prefer": "wait=20"})
    connection.send_body(BODY)
    while not (await site.client.get("/reports")).json()["jobs"]:
        pass
    connection.leave()
    await connection.end()
    assert not connection.has_answer
    answer = asyncio.ensure_future(site.submit(Prefer="wait=20"))
    while len((await site.client.get("/reports")).json()["jobs"]) < 2:
        pass
    site.services.draining.begin()
    assert (await answer).status_code == 202


async def test_draining_and_store_trouble(site: Site) -> None:
    site.faults.raise_at("request-read", StoreUnavailable("disk full at /secret"))
    response = await site.submit()
    problem = assert_problem(response, 503, "store-unavailable")
    assert "secret" not in response.text
    assert int(response.headers["retry-after"]) >= 1
    site.services.draining.begin()
    response = await site.submit()
    problem = assert_problem(response, 503, "draining")
    assert int(response.headers["retry-after"]) >= 1
    assert "shutting down" in str(problem["detail"])


async def test_unexpected_faults_tell_nothing(site: Site) -> None:
    site.faults.raise_at("request-read", RuntimeError("secret"))
    response = await site.submit()
    assert_problem(response, 500, "internal-error")
    assert "secret" not in response.text


async def test_a_request_there_is_no_memory_for_may_be_sent_again_later(site: Site) -> None:
    site.faults.raise_at("request-read", MemoryError())
    response = await site.submit()
    assert_problem(response, 503, "saturated")
    assert int(response.headers["retry-after"]) >= 1
    assert (await site.submit()).status_code == 202


async def test_store_trouble_after_acceptance_is_still_202(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(site.services.watch, "wait", fail)
    assert (await site.submit(Prefer="wait=5")).status_code == 202
