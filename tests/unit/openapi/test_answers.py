"""What the service really answers is what its document says: status, headers and body, route by route."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.outcome import Failed, Outcome, ResultBody, Succeeded
from coatcheck.http.openapi import build_openapi
from coatcheck.http.openapi_job import EXAMPLE_ID
from coatcheck.runtime import Runtime
from coatcheck.store.records import ClaimRequest, Finishing

from .bookshop import make_app, make_settings

# For browsers and proxies, of no use to a client.
UNDESCRIBED = {
    "content-length",
    "content-security-policy",
    "content-type",
    "cross-origin-opener-policy",
    "referrer-policy",
    "x-accel-buffering",
    "x-content-type-options",
}
SUMMARY = b'{"branch":"north","value":0.5,"low_stock":[{"title":"t","units":1}],"by_shelf":null}'


@dataclass(frozen=True)
class Shop:
    """A service without workers, its document, and what a worker would do."""

    runtime: Runtime
    http: httpx.AsyncClient
    document: dict[str, Any]

    async def ask(self, method: str, template: str, job_id: str = "", **request: Any) -> httpx.Response:
        answer = await self.http.request(method, template.replace("{id}", job_id), **request)
        described = self.document["paths"][template.partition("?")[0]][method.lower()]["responses"]
        assert str(answer.status_code) in described, (method, template, answer.status_code, answer.text)
        check_answer(self.document, described[str(answer.status_code)], answer)
        return answer

    async def submit(self, **headers: str) -> httpx.Response:
        return await self.ask("POST", "/reports", json={"branch": "north"}, headers=headers)

    async def work(self, outcome: Outcome | None) -> None:
        """Claim one job and, where an outcome is given, end its attempt with it."""
        store, now, policy = self.runtime.store, self.runtime.clock.now(), self.runtime.app.policies.of("reports")
        request = ClaimRequest("w", 1, {"reports": 1}, {"reports": policy})
        (claim,) = (await store.claim_ready(request, now)).claims
        if outcome is not None:
            await store.finish_attempt(Finishing(claim.lease, outcome, policy, 0.5), now)


def check_answer(document: dict[str, Any], described: dict[str, Any], answer: httpx.Response) -> None:
    if "$ref" in described:
        described = document["components"]["responses"][described["$ref"].rpartition("/")[2]]
    names = {name.lower() for name in described["headers"]}
    assert set(answer.headers) - UNDESCRIBED <= names
    for name in described["headers"]:
        header = document["components"]["headers"][name]
        if name in answer.headers and header["schema"]["type"] == "string":
            assert OAS31Validator(header["schema"]).is_valid(answer.headers[name]), name
        assert not header.get("required") or name in answer.headers
    media = described.get("content", {})
    if answer.content:
        kind = answer.headers["content-type"].partition(";")[0]
        schema = media[kind if kind in media else "*/*"]["schema"]
        if kind.endswith("json"):
            validator = OAS31Validator(
                {**schema, "components": document["components"]}, format_checker=OAS31Validator.FORMAT_CHECKER
            )
            assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer.json())] == []
    else:
        assert not media


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    settings = make_settings(store=f"sqlite:///{tmp_path}/jobs.db", roles=("api",))
    runtime = Runtime(make_app(), settings)
    await runtime.start()
    transport = httpx.ASGITransport(app=runtime.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://bookshop.test") as http:
        yield Shop(runtime, http, build_openapi(runtime.app, settings))
    await runtime.stop()


async def test_handing_in(shop: Shop) -> None:
    first = await shop.submit(**{"Idempotency-Key": "k", "Prefer": "respond-async"})
    again = await shop.submit(**{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.headers["idempotent-replayed"] == "true"
    other = await shop.ask("POST", "/reports", json={"branch": "south"}, headers={"Idempotency-Key": "k"})
    assert other.json()["code"] == "idempotency-key-reused"
    wrong = await shop.ask("POST", "/reports", json={"branch": "!"})
    assert wrong.json()["errors"][0]["pointer"] == "/branch"
    assert (await shop.ask("POST", "/reports", content=b"{", headers={"Content-Type": "application/json"})).is_error
    assert (await shop.ask("POST", "/reports", content=b"{}")).status_code == 415
    assert (await shop.submit(**{"Job-Priority": "10"})).status_code == 400
    assert (await shop.submit(Accept="text/csv")).status_code == 406
    assert (await shop.ask("POST", "/reports", json="x" * 1_048_576)).status_code == 413
    keyless = await shop.ask("POST", "/v1/order-imports", json=[])
    assert keyless.json()["code"] == "idempotency-key-required"


async def test_the_example_is_accepted(shop: Shop) -> None:
    for path in ("/reports", "/v1/covers"):
        media = shop.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert (await shop.ask("POST", path, json=media["example"])).status_code == 202


async def test_a_job_that_succeeds(shop: Shop) -> None:
    job_id = (await shop.submit(**{"Idempotency-Key": "k"})).json()["id"]
    queued = await shop.ask("GET", "/reports/{id}", job_id)
    same = await shop.ask("GET", "/reports/{id}", job_id, headers={"If-None-Match": queued.headers["etag"]})
    assert same.status_code == 304
    assert (await shop.ask("GET", "/reports/{id}/result", job_id)).json()["code"] == "job-not-finished"
    assert (await shop.ask("DELETE", "/reports/{id}", job_id)).json()["code"] == "job-not-finished"
    await shop.work(Succeeded(ResultBody("application/json", SUMMARY)))
    done = await shop.ask("GET", "/reports/{id}", job_id)
    assert done.json()["result"] == json.loads(SUMMARY)
    assert (await shop.submit(**{"Idempotency-Key": "k", "Prefer": "wait=5"})).status_code == 200
    result = await shop.ask("GET", "/reports/{id}/result", job_id)
    assert result.content == SUMMARY
    held = await shop.ask("GET", "/reports/{id}/result", job_id, headers={"If-None-Match": result.headers["etag"]})
    assert held.status_code == 304
    assert (await shop.ask("POST", "/reports/{id}/cancel", job_id)).json()["code"] == "job-already-finished"
    assert len((await shop.ask("GET", "/reports/{id}/attempts", job_id)).json()["attempts"]) == 1
    assert (await shop.ask("DELETE", "/reports/{id}", job_id)).status_code == 204
    assert (await shop.ask("GET", "/reports/{id}", job_id)).status_code == 410
    expired = await shop.submit(**{"Idempotency-Key": "k"})
    assert (expired.status_code, expired.json()["code"]) == (409, "job-expired")


async def test_a_result_that_is_a_file(shop: Shop) -> None:
    job_id = (await shop.submit()).json()["id"]
    await shop.work(Succeeded(ResultBody("text/csv", b"a,b\n", "stock.csv")))
    assert (await shop.ask("GET", "/reports/{id}", job_id)).json()["result_type"] == "text/csv"
    assert "stock.csv" in (await shop.ask("GET", "/reports/{id}/result", job_id)).headers["content-disposition"]


async def test_a_job_that_fails(shop: Shop) -> None:
    job_id = (await shop.submit()).json()["id"]
    await shop.work(Failed(ErrorInfo(ErrorCategory.INVALID_INPUT, "No such branch.", code="branch"), False))
    assert (await shop.ask("GET", "/reports/{id}", job_id)).json()["error"]["code"] == "branch"
    assert (await shop.ask("GET", "/reports/{id}/result", job_id)).json()["code"] == "job-failed"
    assert (await shop.ask("GET", "/reports/{id}/attempts", job_id)).json()["attempts"][0]["outcome"] == "failed"


async def test_a_job_that_is_cancelled(shop: Shop) -> None:
    job_id = (await shop.submit()).json()["id"]
    body = shop.document["paths"]["/reports/{id}/cancel"]["post"]["requestBody"]["content"]["application/json"]
    refused = await shop.ask("POST", "/reports/{id}/cancel", job_id, json={"because": "x"})
    assert refused.status_code == 422
    await shop.work(None)
    told = await shop.ask("POST", "/reports/{id}/cancel", job_id, json=body["example"])
    assert (told.status_code, told.json()["cancel_reason"]) == (202, body["example"]["reason"])
    waiting = (await shop.submit()).json()["id"]
    assert (await shop.ask("POST", "/reports/{id}/cancel", waiting)).status_code == 200
    assert (await shop.ask("GET", "/reports/{id}/result", waiting)).json()["code"] == "job-cancelled"


async def test_a_stream_of_a_job_that_is_over(shop: Shop) -> None:
    job_id = (await shop.submit()).json()["id"]
    await shop.ask("POST", "/reports/{id}/cancel", job_id)
    stream = {"Accept": "text/event-stream"}
    assert "event: done" in (await shop.ask("GET", "/reports/{id}", job_id, headers=stream)).text
    after = await shop.ask("GET", "/reports/{id}", job_id, headers={**stream, "Last-Event-ID": "99"})
    assert after.status_code == 204
    assert (await shop.ask("GET", "/reports/{id}", job_id, headers={"Accept": "text/csv"})).status_code == 406


async def test_lists(shop: Shop) -> None:
    for _ in range(3):
        await shop.submit()
    for path in ("/reports", "/v1/jobs"):
        page = await shop.ask("GET", path, params={"limit": 2, "status": "queued"})
        assert len(page.json()["jobs"]) == 2
        assert 'rel="next"' in page.headers["link"]
        cursor = page.json()["next_cursor"]
        rest = await shop.ask("GET", path, params={"limit": 2, "status": "queued", "cursor": cursor})
        assert (len(rest.json()["jobs"]), rest.json()["next_cursor"]) == (1, None)
        assert (await shop.ask("GET", path, params={"cursor": "nonsense"})).json()["code"] == "invalid-cursor"
        assert (await shop.ask("GET", path, params={"limit": 0})).json()["code"] == "invalid-parameter"


async def test_what_is_not_there(shop: Shop) -> None:
    for method, path in (
        ("GET", "/reports/{id}"),
        ("DELETE", "/reports/{id}"),
        ("GET", "/reports/{id}/result"),
        ("POST", "/reports/{id}/cancel"),
        ("GET", "/reports/{id}/attempts"),
    ):
        assert (await shop.ask(method, path, EXAMPLE_ID)).status_code == 404


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/problems"])
async def test_the_service_itself(shop: Shop, path: str) -> None:
    assert (await shop.ask("GET", path)).status_code == 200
    large = await shop.ask("GET", path, headers={"X-Large": "x" * shop.runtime.settings.headers_bytes_max})
    assert large.status_code == 431


async def test_a_service_that_drains(shop: Shop) -> None:
    shop.runtime.draining.begin()
    assert (await shop.submit()).json()["code"] == "draining"
    assert (await shop.ask("GET", "/readyz")).json()["code"] == "draining"


async def test_other_methods(shop: Shop) -> None:
    answer = await shop.http.put("/reports")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    check_answer(shop.document, {"$ref": "#/components/responses/405-method-not-allowed"}, answer)
