"""GET of a job: conditional, waiting, streaming; its result, its attempts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from http_site import Connection, Site, open_site
from test_handing_in import assert_problem

from coatcheck.core.outcome import ResultBody
from coatcheck.http.result import content_disposition


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


UNKNOWN = "/reports/job_" + "0" * 28


async def test_status_headers_and_304(site: Site) -> None:
    url = await site.accepted()
    response = await site.client.get(url)
    assert response.status_code == 200
    tag = response.headers["etag"]
    assert tag == '"v1-r1"'
    assert response.headers["cache-control"] == "private, no-cache"
    assert response.headers["vary"] == "Accept, Prefer"
    assert "retry-after" in response.headers
    same = await site.client.get(url, headers={"if-none-match": f'"other", W/{tag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert {"retry-after", "cache-control", "vary", "x-correlation-id"} <= same.headers.keys()
    assert "content-type" not in same.headers
    await site.claim()
    newer = await site.client.get(url, headers={"if-none-match": tag})
    assert (newer.status_code, newer.json()["status"]) == (200, "running")


async def test_finished_job_carries_sunset_and_no_retry_after(site: Site) -> None:
    url = await site.succeeded()
    response = await site.client.get(url)
    assert response.headers["sunset"] == "Mon, 12 Jan 2026 08:00:00 GMT"
    assert "retry-after" not in response.headers
    job = response.json()
    assert (job["done"], job["result"], job["result_type"], job["result_bytes"]) == (
        True,
        {"titles": 500},
        "application/json",
        15,
    )


async def test_head_is_get_without_a_body_and_never_waits(site: Site) -> None:
    url = await site.accepted()
    head = await site.client.head(url, headers={"prefer": "wait=20"})
    get = await site.client.get(url)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    assert "preference-applied" not in head.headers
    for path in ("/reports", "/v1/jobs", "/livez", "/readyz", "/metrics", f"{url}/attempts"):
        assert (await site.client.head(path)).status_code == 200
    assert (await site.client.head(UNKNOWN)).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        UNKNOWN,
        UNKNOWN + "/result",
        UNKNOWN + "/attempts",
        "/reports/",
        "/reports/job_1",
        "/reports/job_" + "O" * 28,
        "/reports/a/b/c",
        "/nothing",
        "/",
        "/reports/%00",
        "/reports/..%2f..%2fetc",
        UNKNOWN + "/nothing",
        UNKNOWN + "/result/",
    ],
)
async def test_not_found(site: Site, path: str) -> None:
    assert_problem(await site.client.get(path), 404, "not-found")


async def test_another_operations_path_is_not_found(site: Site) -> None:
    url = (await site.accepted()).replace("/reports", "/v1/strict")
    assert_problem(await site.client.get(url), 404, "not-found")
    assert_problem(await site.client.post(url + "/cancel"), 404, "not-found")
    assert_problem(await site.client.delete(url), 404, "not-found")
    assert_problem(await site.client.get(url + "/result"), 404, "not-found")


async def test_expired_jobs_are_410(site: Site) -> None:
    url = await site.succeeded()
    assert (await site.client.delete(url)).status_code == 204
    for path in (url, url + "/result", url + "/attempts"):
        assert_problem(await site.client.get(path), 410, "job-expired")
    assert_problem(await site.client.delete(url), 410, "job-expired")
    assert_problem(await site.client.post(url + "/cancel"), 410, "job-expired")
    other = url.replace("/reports", "/v1/strict")
    assert_problem(await site.client.get(other), 404, "not-found")
    assert site.metrics.read("status_reads", operation="reports", answer="410") == 1


async def test_methods(site: Site) -> None:
    url = await site.accepted()
    for method, path, allow in (
        ("PUT", "/reports", "GET, HEAD, POST"),
        ("OPTIONS", url, "DELETE, GET, HEAD"),
        ("POST", url + "/result", "GET, HEAD"),
        ("GET", url + "/cancel", "POST"),
        ("DELETE", "/v1/jobs", "GET, HEAD"),
        ("BREW", "/livez", "GET, HEAD"),
    ):
        response = await site.client.request(method, path)
        assert_problem(response, 405, "method-not-allowed")
        assert response.headers["allow"] == allow


async def test_wait_on_get(site: Site) -> None:
    url = await site.accepted()
    answer = asyncio.ensure_future(site.client.get(url, headers={"prefer": "wait=20"}))
    claim = await site.claim()
    await site.progress(claim, 0.5)
    await site.finish(claim)
    response = await answer
    assert (response.status_code, response.json()["status"]) == (200, "succeeded")
    assert response.headers["preference-applied"] == "wait=20"


async def test_wait_for_any_newer_version(site: Site) -> None:
    url = await site.accepted()
    tag = (await site.client.get(url)).headers["etag"]
    headers = {"prefer": "wait=20", "if-none-match": tag}
    answer = asyncio.ensure_future(site.client.get(url, headers=headers))
    await site.claim()
    assert (await answer).json()["status"] == "running"
    at_once = await site.client.get(url, headers=headers)
    assert at_once.status_code == 200
    headers["if-none-match"] = at_once.headers["etag"]
    ran_out = await site.client.get(url, headers={**headers, "prefer": "wait=0"})
    assert ran_out.status_code == 304
    assert ran_out.headers["preference-applied"] == "wait=0"


async def test_result(site: Site) -> None:
    url = await site.succeeded()
    response = await site.client.get(url + "/result")
    assert response.json() == {"titles": 500}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["content-disposition"].startswith("attachment; filename=")
    assert "sunset" in response.headers
    head = await site.client.head(url + "/result")
    assert (head.content, head.headers["content-length"]) == (b"", "15")
    unchanged = await site.client.get(url + "/result", headers={"if-none-match": response.headers["etag"]})
    assert unchanged.status_code == 304


async def test_file_result_keeps_type_and_name(site: Site) -> None:
    url = await site.succeeded(ResultBody("text/html; charset=utf-8", b"<script>", "Bücher & mehr.html"))
    response = await site.client.get(url + "/result")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-disposition"] == (
        "attachment; filename=\"B_cher _ mehr.html\"; filename*=UTF-8''B%C3%BCcher%20&%20mehr.html"
    )
    job = (await site.client.get(url)).json()
    assert "result" not in job
    assert job["result_type"] == "text/html; charset=utf-8"


def test_file_names_cannot_leave_their_header() -> None:
    assert b"\n" not in content_disposition('a\r\nSet-Cookie: x="1"/../\\')
    assert content_disposition("plain name.pdf") == b'attachment; filename="plain name.pdf"'


async def test_no_result(site: Site) -> None:
    url = await site.accepted()
    response = await site.client.get(url + "/result")
    assert_problem(response, 409, "job-not-finished")
    assert "retry-after" in response.headers
    assert (await site.client.post(url + "/cancel")).status_code == 200
    assert_problem(await site.client.get(url + "/result"), 409, "job-cancelled")
    failed = await site.failed()
    response = await site.client.get(failed + "/result")
    assert_problem(response, 409, "job-failed")
    assert "secret" not in response.text + (await site.client.get(failed)).text
    assert (await site.client.get(failed)).json()["error"] == {
        "category": "handler_error",
        "code": "no-branch",
        "title": "The work failed",
        "detail": "No such branch",
    }


async def test_attempts(site: Site) -> None:
    url = await site.failed()
    assert (await site.client.get(url + "/attempts")).json()["attempts"] == [
        {
            "number": 1,
            "started_at": "2026-01-05T08:00:00.000Z",
            "finished_at": "2026-01-05T08:00:00.000Z",
            "outcome": "failed",
            "error": (await site.client.get(url)).json()["error"],
        }
    ]


async def test_stream_tells_every_version_and_ends(site: Site) -> None:
    url = await site.accepted()
    connection = Connection(site, "GET", url, {"accept": "text/event-stream"})
    connection.send_body(b"")
    start = await connection.next()
    assert (start["status"], dict(start["headers"])[b"content-type"]) == (200, b"text/event-stream")
    assert await connection.next_text() == "retry: 2000\n\n"
    assert (await connection.next_text()).startswith("event: status\nid: 1\ndata: {")
    claim = await site.claim()
    assert (await connection.next_text()).startswith("event: status\nid: 2\n")
    await site.progress(claim, 0.5)
    assert (await connection.next_text()).startswith("event: progress\nid: 3\n")
    await site.finish(claim)
    last = await connection.next_text()
    assert last.startswith("event: done\nid: 4\n")
    assert last.count("\n") == 4
    assert await connection.next() == {"type": "http.response.body", "body": b""}
    await connection.end()


async def test_stream_resumes(site: Site) -> None:
    url = await site.succeeded()
    headers = {"accept": "text/event-stream"}
    whole = await site.client.get(url, headers={**headers, "last-event-id": "2"})
    assert whole.text.count("event: ") == 1
    assert "event: done\nid: 3\n" in whole.text
    over = await site.client.get(url, headers={**headers, "last-event-id": "3"})
    assert (over.status_code, over.content) == (204, b"")
    odd = await site.client.get(url, headers={**headers, "last-event-id": "x"})
    assert "event: done\nid: 3\n" in odd.text
    head = await site.client.head(url, headers=headers)
    assert (head.headers["content-type"], head.content) == ("text/event-stream", b"")


async def test_stream_ends_with_its_client_and_at_a_drain(site: Site) -> None:
    url = await site.accepted()
    gone = Connection(site, "GET", url, {"accept": "text/event-stream"})
    staying = Connection(site, "GET", url, {"accept": "text/event-stream", "last-event-id": "1"})
    for connection in (gone, staying):
        connection.send_body(b"")
        await connection.next()
        await connection.next()
    gone.leave()
    await gone.end()
    site.services.draining.begin()
    assert await staying.next() == {"type": "http.response.body", "body": b""}
    await staying.end()
    assert (await site.client.get(url)).status_code == 200


async def test_a_result_may_go_before_its_job(site: Site) -> None:
    url = (await site.client.post("/v1/brief", json={})).headers["location"]
    await site.finish(await site.claim())
    tag = (await site.client.get(url)).headers["etag"]
    site.clock.advance(2 * 3600)
    assert_problem(await site.client.get(url + "/result"), 410, "result-expired")
    kept = await site.client.get(url, headers={"if-none-match": tag})
    assert kept.status_code == 200
    assert "result" not in kept.json()
    assert kept.json()["result_bytes"] == 15
    site.clock.advance(24 * 3600)
    assert_problem(await site.client.get(url), 410, "job-expired")


async def test_waiting_for_nothing_ends_at_once(site: Site) -> None:
    url = await site.succeeded()
    tag = (await site.client.get(url)).headers["etag"]
    response = await site.client.get(url, headers={"prefer": "wait=20", "if-none-match": tag})
    assert (response.status_code, response.headers["preference-applied"]) == (304, "wait=20")
    erased = await site.accepted()
    answer = asyncio.ensure_future(site.client.get(erased, headers={"prefer": "wait=20"}))
    await site.finish(await site.claim())
    await site.client.delete(erased)
    assert (await answer).status_code in (200, 410)
