"""Cancel, erase, lists, health, and what every answer has in common."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from http_site import Connection, Site, open_site
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message
from test_handing_in import assert_problem


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def test_cancel_queued_with_a_reason(site: Site) -> None:
    url = await site.accepted()
    response = await site.client.post(url + "/cancel", json={"reason": "Zu spät"})
    job = response.json()
    assert (response.status_code, job["status"], job["cancel_reason"]) == (200, "cancelled", "Zu spät")
    again = await site.client.post(url + "/cancel")
    assert (again.status_code, again.json()["cancel_reason"]) == (200, "Zu spät")


async def test_cancel_running_and_finished(site: Site) -> None:
    url = await site.accepted()
    claim = await site.claim()
    for _ in range(2):
        response = await site.client.post(url + "/cancel")
        assert (response.status_code, response.json()["cancel_requested"]) == (202, True)
        assert "retry-after" in response.headers
    await site.finish(claim)
    assert_problem(await site.client.post(url + "/cancel"), 409, "job-already-finished")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"[]", 422, "invalid-request"),
        (b'{"reason": 1}', 422, "invalid-request"),
        (b'{"reason": "x", "why": "y"}', 422, "invalid-request"),
        (b'{"reason": "%s"}' % (b"x" * 501), 422, "invalid-request"),
        (b"{", 400, "malformed-json"),
        (b" ", 400, "malformed-json"),
        (b" " * 9000, 413, "payload-too-large"),
    ],
)
async def test_cancel_bodies_that_are_refused(site: Site, body: bytes, status: int, code: str) -> None:
    url = await site.accepted()
    json = {"content-type": "application/json"}
    assert_problem(await site.client.post(url + "/cancel", content=body, headers=json), status, code)
    assert (await site.client.get(url)).json()["status"] == "queued"


async def test_cancel_body_needs_its_type(site: Site) -> None:
    url = await site.accepted()
    assert_problem(await site.client.post(url + "/cancel", content=b"{}"), 415, "unsupported-media-type")


async def test_erase(site: Site) -> None:
    url = await site.accepted()
    response = await site.client.delete(url)
    assert_problem(response, 409, "job-not-finished")
    claim = await site.claim()
    assert_problem(await site.client.delete(url), 409, "job-not-finished")
    await site.finish(claim)
    response = await site.client.delete(url)
    assert (response.status_code, response.content) == (204, b"")
    assert "x-correlation-id" in response.headers


async def test_pages(site: Site) -> None:
    urls = [await site.accepted() for _ in range(5)]
    seen, path, pages = [], "/reports?limit=2", 0
    while path:
        response = await site.client.get(path)
        page = response.json()
        seen += [job["status_url"] for job in page["jobs"]]
        assert (page["next_cursor"] is None) is ("next" not in response.links)
        path, pages = response.links.get("next", {}).get("url", ""), pages + 1
        assert path == "" or path.startswith("/reports?")
    assert (seen, pages) == (urls[::-1], 3)
    everything = (await site.client.get("/v1/jobs")).json()
    assert [job["status_url"] for job in everything["jobs"]] == urls[::-1]


async def test_filter_and_cursor_belong_together(site: Site) -> None:
    for _ in range(3):
        await site.accepted()
    cursor = (await site.client.get("/reports?limit=1&status=queued")).json()["next_cursor"]
    assert (await site.client.get(f"/reports?limit=2&status=queued&cursor={cursor}")).status_code == 200
    for path in (
        f"/reports?cursor={cursor}",
        f"/reports?status=failed&cursor={cursor}",
        f"/v1/jobs?status=queued&cursor={cursor}",
        f"/reports?status=queued&cursor={cursor[:-1]}",
        f"/reports?status=queued&cursor={'A' + cursor[1:]}",
        f"/reports?status=queued&cursor={cursor}=",
        "/reports?cursor=",
        "/reports?cursor=" + "a" * 400,
        "/reports?cursor=%C3%A9",
        "/reports?cursor=null",
    ):
        assert_problem(await site.client.get(path), 400, "invalid-cursor")
    assert (await site.client.get("/reports?status=running")).json()["jobs"] == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=1e9",
        "limit=NaN",
        "limit=",
        "limit=1&limit=1",
        "status=done",
        "status=",
        "status=QUEUED",
        "offset=1",
        "limit[]=1",
        "status=%FF",
        "&".join(f"a{number}=1" for number in range(100)),
    ],
)
async def test_invalid_parameters(site: Site, query: str) -> None:
    assert_problem(await site.client.get(f"/v1/jobs?{query}"), 400, "invalid-parameter")


async def test_health(site: Site) -> None:
    assert (await site.client.get("/livez")).status_code == 200
    assert (await site.client.get("/readyz")).status_code == 200
    await site.accepted()
    metrics = await site.client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'coatcheck_accepted_total{operation="reports"} 1.0' in metrics.text
    assert 'route="/reports"' in metrics.text
    site.services.draining.begin()
    assert_problem(await site.client.get("/readyz"), 503, "draining")
    assert (await site.client.get("/livez")).status_code == 200


async def test_every_answer_carries_the_correlation_id(site: Site) -> None:
    url = await site.accepted()
    paths = ("/nothing", "/livez", "/docs", "/openapi.json", "/problems/not-found", "/problems/x", url, "/docs/")
    for path in paths:
        response = await site.client.get(path, headers={"x-correlation-id": "c-1"})
        assert response.headers.get_list("x-correlation-id") == ["c-1"], path
        assert response.headers.get_list("x-content-type-options") == ["nosniff"], path
    replaced = await site.client.get("/livez", headers={"x-correlation-id": "a b"})
    assert len(replaced.headers["x-correlation-id"]) == 32


async def test_documents_refuse_like_everything_else(site: Site) -> None:
    response = await site.client.post("/docs")
    assert_problem(response, 405, "method-not-allowed")
    assert "GET" in response.headers["allow"]
    assert_problem(await site.client.get("/problems/unknown"), 404, "not-found")


async def test_headers_too_large(site: Site) -> None:
    response = await site.client.get("/livez", headers={"x-filler": "x" * 40_000})
    assert_problem(response, 431, "headers-too-large")


async def test_hosts_are_never_reflected(site: Site) -> None:
    headers = {"host": "evil.test", "forwarded": "host=evil.test", "x-forwarded-host": "evil.test"}
    response = await site.client.post("/reports", json={"branch": "leeds"}, headers=headers)
    assert "evil" not in response.text + str(response.headers)
    listed = await site.client.get("/v1/jobs?limit=1", headers=headers)
    assert "evil" not in listed.text + str(listed.headers)


async def test_mounted_below_another_app(site: Site) -> None:
    outer = Starlette(routes=[Mount("/jo bs", site.asgi)])
    transport = httpx.ASGITransport(app=outer)
    async with httpx.AsyncClient(transport=transport, base_url="http://outer") as client:
        response = await client.post("/jo bs/reports", json={"branch": "leeds"})
        url = response.headers["location"]
        assert url == response.json()["status_url"]
        assert url.startswith("/jo%20bs/reports/job_")
        assert (await client.get(url)).json()["cancel_url"] == f"{url}/cancel"
        await client.post("/jo bs/reports", json={"branch": "leeds"})
        link = (await client.get("/jo bs/v1/jobs?limit=1")).links["next"]["url"]
        assert link.startswith("/jo%20bs/v1/jobs?")
        assert len((await client.get(link)).json()["jobs"]) == 1
        assert (await client.get("/jo bs/nothing")).json()["type"] == "/jo%20bs/problems/not-found"
        assert (await client.get("/jo bs/livez")).status_code == 200


async def test_public_url(tmp_path: Path) -> None:
    async with open_site(tmp_path, {"public_url": "https://jobs.example.org/api"}) as site:
        response = await site.submit()
        base = "https://jobs.example.org/api/reports/job_"
        assert response.headers["location"].startswith(base)
        assert response.json()["result_url"].startswith(base)
        missing = await site.client.get("/nothing")
        assert missing.json()["type"] == "https://jobs.example.org/api/problems/not-found"


async def test_slow_body(tmp_path: Path) -> None:
    async with open_site(tmp_path, {"body_timeout_s": 0.05}) as site:
        headers = {"content-type": "application/json", "content-length": "40"}
        connection = Connection(site, "POST", "/reports", headers)
        connection.send_body(b'{"branch"', has_more=True)
        async with asyncio.timeout(2):
            start = await connection.next()
        assert start["status"] == 408
        assert (b"connection", b"close") in start["headers"]
        await connection.end()


async def test_silent_stream_comments(tmp_path: Path) -> None:
    async with open_site(tmp_path, {"stream_comment_s": 0.05}) as site:
        connection = Connection(site, "GET", await site.accepted(), {"accept": "text/event-stream"})
        connection.send_body(b"")
        for _ in range(3):
            await connection.next()
        assert await connection.next_text() == ":\n\n"
        connection.leave()
        await connection.end()


async def test_lifespan_and_websockets(site: Site) -> None:
    incoming: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(str(message["type"]))

    await site.asgi({"type": "lifespan"}, receive, send)
    await site.asgi({"type": "websocket"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]
