"""Resources: the service's own pages, and that its description of itself is true."""

from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from coatcheck import App, DeclarationError, Job
from harness.http import Client, JsonObject, problem
from harness.server import Server
from harness.stage import Stage

from .conftest import Connect, Serve


def test_livez_and_readyz_say_yes(client: Client) -> None:
    assert client.get("/livez").status_code == 200
    assert client.get("/readyz").status_code == 200


def test_metrics_are_prometheus_text(client: Client) -> None:
    client.final(client.submit("tasks", {}))
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    for name in ("accepted_total", "acceptance_seconds", "start_delay_seconds", "completion_seconds", "running_jobs"):
        assert f"coatcheck_{name}" in answer.text, name
    assert 'coatcheck_finished_total{operation="tasks",status="succeeded"}' in answer.text


def test_openapi_is_3_1_and_names_every_route_header_and_problem(client: Client) -> None:
    document: dict[str, Any] = client.get("/openapi.json").json()
    validate(document)
    assert document["openapi"].startswith("3.1")
    for path in ("/v1/tasks", "/shop/reports"):
        assert {"get", "post"} <= set(document["paths"][path])
    suffixes = ("", "/result", "/cancel", "/attempts")
    templates = [path for path in document["paths"] if path.startswith("/v1/tasks/{")]
    assert len(templates) == len(suffixes), templates
    text = client.get("/openapi.json").text
    for header in ("Idempotency-Key", "Prefer", "X-Correlation-ID", "traceparent", "Job-Start-After", "Job-Deadline"):
        assert header in text, header
    for code in ("malformed-json", "invalid-header", "idempotency-key-reused", "job-expired", "store-unavailable"):
        assert code in text, code


def test_docs_fetch_nothing_from_the_network(client: Client) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    for foreign in ('src="http', "src='http", 'src="//', 'href="http', "@import", "url(http", "cdn."):
        assert foreign not in answer.text, foreign


def test_every_problem_met_has_a_page(client: Client) -> None:
    for code in ("malformed-json", "not-found", "job-expired", "idempotency-key-reused", "draining"):
        answer = client.get(f"/problems/{code}")
        assert answer.status_code == 200, code
        assert code in answer.text
    problem(client.get("/problems/no-such-code"), 404, "not-found")


def test_bb114_pages_do_not_let_scripts_of_others_in(client: Client) -> None:
    for path in ("/docs", "/problems/not-found"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        assert answer.headers["x-content-type-options"] == "nosniff"
    mirrored = client.http.get("/problems/<img src=x onerror=alert(1)>", headers={"Accept": "text/html"})
    assert b"<img" not in mirrored.content


def test_readyz_never_depends_on_workers(serve: Serve, connect: Connect) -> None:
    api_only = connect(serve("--roles", "api"))
    assert api_only.get("/readyz").status_code == httpx.codes.OK
    job = api_only.submit("tasks", {})
    assert api_only.job(job)["status"] == "queued"


@pytest.fixture(scope="session")
def document(server: Server) -> JsonObject:
    """The service's OpenAPI document."""
    with httpx.Client(base_url=server.url) as http:
        described: JsonObject = http.get("/openapi.json").json()
    return described


def described_answer(document: JsonObject, method: str, path: str, status: int) -> JsonObject:
    """What the document says about one answer."""
    answers = document["paths"][path][method]["responses"]
    assert str(status) in answers, f"{method} {path} {status} is not described"
    answer: JsonObject = answers[str(status)]
    while "$ref" in answer:
        answer = resolved(document, answer["$ref"])
    return answer


def resolved(document: JsonObject, reference: str) -> JsonObject:
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/").replace("~0", "~")]
    assert isinstance(found, dict)
    return found


def assert_as_described(document: JsonObject, method: str, path: str, answer: httpx.Response) -> None:
    """The answer's status, headers, type and body are those that the document promises."""
    described = described_answer(document, method, path, answer.status_code)
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in described["content"], f"{kind} is not described"
    schema = {"components": document["components"], **described["content"][kind]["schema"]}
    faults = [fault.message for fault in OAS31Validator(schema).iter_errors(answer.json())]
    assert not faults, faults
    for name in ("location", "retry-after", "etag", "sunset", "x-correlation-id", "idempotent-replayed"):
        if name in answer.headers:
            assert name in {given.lower() for given in described.get("headers", {})}, f"{name} is not described"


def template(document: JsonObject, ending: str = "") -> str:
    """The path of one job of the operation `tasks`."""
    [path] = [path for path in document["paths"] if path.startswith("/v1/tasks/{") and path.endswith("}" + ending)]
    return str(path)


def test_bb044_jobs_in_every_state_are_as_described(client: Client, stage: Stage, document: JsonObject) -> None:
    queued = client.post("tasks", {}, Job_Start_After="3600", Job_Deadline="7200")
    assert_as_described(document, "post", "/v1/tasks", queued)
    running = client.submit("tasks", stage.task("progress"))
    stage.tell_progress(1, 2, "half")
    client.until(running, lambda now: now["progress"], "progress")
    cancelled = client.submit("tasks", {}, Job_Start_After="3600")
    assert_as_described(document, "post", template(document, "/cancel"), client.cancel(cancelled, "why"))
    failed = client.final(client.submit("tasks", {"plan": ["fail:invalid_input:code"]}))
    succeeded = client.final(client.submit("tasks", {"value": 1}))
    for job in (queued.json(), running, cancelled, failed, succeeded):
        for path, ending in ((job["status_url"], ""), (job["status_url"] + "/attempts", "/attempts")):
            assert_as_described(document, "get", template(document, ending), client.get(path))
    assert_as_described(document, "get", "/v1/tasks", client.get("/v1/tasks?limit=3"))
    assert_as_described(document, "get", "/v1/jobs", client.get("/v1/jobs?limit=3"))
    assert_as_described(document, "post", template(document, "/cancel"), client.cancel(running))
    client.cancel(queued.json())


def test_problems_are_as_described(client: Client, document: JsonObject) -> None:
    job = client.submit("tasks", {}, Job_Start_After="3600", Idempotency_Key="described")
    met = [
        ("post", "/v1/tasks", client.post("tasks", {"nope": 1})),
        ("post", "/v1/tasks", client.post_bytes("tasks", b"{")),
        ("post", "/v1/tasks", client.post_bytes("tasks", b"{}", Content_Type="text/plain")),
        ("post", "/v1/tasks", client.post("tasks", {"value": 2}, Idempotency_Key="described")),
        ("post", "/v1/small", client.post("small", {"value": "x" * 3000})),
        ("get", "/v1/jobs", client.get("/v1/jobs?limit=0")),
        ("get", template(document), client.get("/v1/tasks/job_x")),
        ("get", template(document), client.get(job["status_url"], Accept="text/html")),
        ("get", template(document, "/result"), client.get(job["result_url"])),
        ("delete", template(document), client.erase(job)),
    ]
    client.cancel(job)
    client.erase(job)
    met.append(("get", template(document), client.get(job["status_url"])))
    met.append(("post", "/v1/tasks", client.post("tasks", {}, Idempotency_Key="described")))
    for method, path, answer in met:
        assert_as_described(document, method, path, answer)
    assert len({answer.json()["code"] for _, _, answer in met}) >= 9


def test_metrics_count_what_was_answered(client: Client) -> None:
    def count(series: str) -> float:
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"coatcheck_{series}"))

    series = [
        'accepted_total{operation="keyed"}',
        'replayed_total{operation="keyed"}',
        'key_conflicts_total{operation="keyed"}',
        'refused_total{code="idempotency-key-required",operation="keyed"}',
    ]
    before = [count(name) for name in series]
    key = {"Idempotency_Key": f"metrics-{before}"[:200].replace(" ", "")}
    for body in ({}, {}, {"value": 2}):
        client.post("keyed", body, **key)
    client.post("keyed", {})
    assert [now - then for now, then in zip(map(count, series), before, strict=True)] == [1, 1, 1, 1]


def test_log_lines_name_the_job_and_its_correlation(serve: Serve, connect: Connect) -> None:
    server = serve()
    job = connect(server).post("tasks", {"plan": ["log"]}, X_Correlation_ID="log-me", Prefer="wait=10").json()
    [line] = server.log_lines("handler_was_here")
    expected = {"job": job["id"], "attempt": 1, "tenant": "default", "operation": "tasks", "correlation_id": "log-me"}
    assert {name: line[name] for name in expected} == expected


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs",
        "/v1/jobs/mine",
        "/livez",
        "/docs",
        "/problems",
        "/admin/x",
        "/v1/uploads",
        "/v1/events",
        "/metrics",
        "/taken",
        "/taken/below",
        "relative",
        "/",
        "/trailing/",
        "/a//b",
        "/a/../b",
        "/{id}",
        "/*",
        "/a b",
        "/ü",
    ],
)
def test_reserved_and_overlapping_paths_fail_at_import(path: str) -> None:
    app = App("declared")

    @app.operation("first", path="/taken")
    async def first(request: Any, job: Job) -> Any:
        return request

    with pytest.raises(DeclarationError):
        app.operation("second", path=path)(first)
