"""The document is valid OpenAPI 3.1 and says everything the contract says."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from coatcheck.completion.representation import UrlBook, represent
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import JobRecord, Progress, ResultInfo
from coatcheck.core.problems import PROBLEMS
from coatcheck.core.states import Status
from coatcheck.http.dispatch import Resources
from coatcheck.http.openapi import build_openapi
from coatcheck.http.openapi_answers import PROBLEM_TYPE
from coatcheck.http.openapi_job import EXAMPLE_ID, job_example
from coatcheck.http.services import HttpServices

from .bookshop import OF_OPERATORS, guarded_settings, make_app, make_settings

REQUEST_HEADERS = {
    "Idempotency-Key",
    "Prefer",
    "X-Correlation-ID",
    "traceparent",
    "Job-Start-After",
    "Job-Deadline",
    "Job-Priority",
    "If-None-Match",
    "Last-Event-ID",
}
ANSWER_HEADERS = {
    "Location",
    "Retry-After",
    "ETag",
    "Sunset",
    "Job-Estimated-Start",
    "RateLimit",
    "RateLimit-Policy",
    "Preference-Applied",
    "Idempotent-Replayed",
    "X-Correlation-ID",
    "Cache-Control",
    "Vary",
    "Link",
    "Allow",
    "Content-Disposition",
}
METHODS = ("get", "post", "delete")
INSTANT = 1_773_480_413_589

Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    return build_openapi(make_app(), make_settings())


def routes(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def route_named(document: Document, operation_id: str) -> Document:
    return next(route for _, _, route in routes(document) if route["operationId"] == operation_id)


def parameters_of(route: Document) -> dict[str, Document]:
    return {parameter["name"]: parameter for parameter in route["parameters"]}


def nodes(value: Any) -> Iterator[Any]:
    yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(member)


def checked(document: Document, schema: Document, instance: Any) -> None:
    """Validate against a schema whose references lead into the document."""
    whole = {**schema, "components": document["components"]}
    validator = OAS31Validator(whole, format_checker=OAS31Validator.FORMAT_CHECKER)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(instance)] == []


def test_it_is_valid_openapi(document: Document) -> None:
    OpenAPIV31SpecValidator(document).validate()


def test_the_same_app_gives_the_same_bytes() -> None:
    made = [json.dumps(build_openapi(make_app(), make_settings())) for _ in range(2)]
    assert made[0] == made[1]


def test_its_routes_are_those_that_are_served(document: Document) -> None:
    store = SimpleNamespace(clock=None)
    services = SimpleNamespace(
        app=make_app(), store=store, metrics=None, settings=make_settings(), rates=None, views=None
    )
    resources = Resources(cast("HttpServices", services))
    for path, item in document["paths"].items():
        found = resources.find(path.replace("{id}", EXAMPLE_ID))
        if found is not None:
            assert set(found[0].methods) - {"HEAD"} == {method.upper() for method in METHODS if method in item}
        else:
            assert path.startswith(("/docs", "/problems", "/openapi.json"))


@pytest.mark.parametrize("name", ["reports", "order-imports", "covers", "hostile"])
def test_every_operation_has_all_its_routes(document: Document, name: str) -> None:
    verbs = {
        route["operationId"].removesuffix(f"_{name}") for _, _, route in routes(document) if route["tags"] == [name]
    }
    assert verbs == {"submit", "list", "get", "result_of", "cancel", "erase", "attempts_of"}


def test_operation_ids_are_unique(document: Document) -> None:
    ids = [route["operationId"] for _, _, route in routes(document)]
    assert len(ids) == len(set(ids))


def test_every_request_header_is_described(document: Document) -> None:
    described = {
        parameter["name"]: parameter["description"]
        for _, _, route in routes(document)
        for parameter in route.get("parameters", [])
        if parameter["in"] == "header"
    }
    assert set(described) == REQUEST_HEADERS
    assert all(described.values())


def test_every_answer_header_is_described_and_used(document: Document) -> None:
    assert set(document["components"]["headers"]) == ANSWER_HEADERS
    used = {node["$ref"].rpartition("/")[2] for node in nodes(document) if is_header_reference(node)}
    assert used == ANSWER_HEADERS


def is_header_reference(node: Any) -> bool:
    return isinstance(node, dict) and str(node.get("$ref", "")).startswith("#/components/headers/")


def test_every_answer_carries_the_correlation_id(document: Document) -> None:
    for _, _, route in routes(document):
        for answer in route["responses"].values():
            answered = answer if "headers" in answer else document["components"]["responses"][last(answer["$ref"])]
            assert "X-Correlation-ID" in answered["headers"]


def last(reference: str) -> str:
    return reference.rpartition("/")[2]


def test_every_problem_code_is_present_at_each_of_its_statuses(document: Document) -> None:
    present: dict[str, set[int]] = {}
    for answer in build_openapi(make_app(), guarded_settings())["components"]["responses"].values():
        narrowed = answer["content"][PROBLEM_TYPE]["schema"]["allOf"][1]["properties"]
        for code in narrowed["code"]["enum"]:
            present.setdefault(code, set()).add(narrowed["status"]["const"])
    assert present == {code: set(kind.statuses) for code, kind in PROBLEMS.items() if code not in OF_OPERATORS}
    assert document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"] == sorted(PROBLEMS)


def test_every_reference_leads_somewhere(document: Document) -> None:
    for node in nodes(document):
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            target: Any = document
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step]


def test_links_lead_from_the_202_to_every_route_of_the_job(document: Document) -> None:
    ids = {route["operationId"] for _, _, route in routes(document)}
    for status in ("200", "202"):
        links = route_named(document, "submit_reports")["responses"][status]["links"]
        assert set(links) == {"status", "result", "cancel", "attempts", "erase"}
        assert all(link["operationId"] in ids for link in links.values())
        assert all(link["parameters"] == {"id": "$response.body#/id"} for link in links.values())


def test_an_operation_publishes_its_key_window_and_whether_a_key_is_required(document: Document) -> None:
    route = route_named(document, "submit_order-imports")
    key = parameters_of(route)["Idempotency-Key"]
    assert key["required"] is True
    assert "2 days" in key["description"]
    assert route["x-idempotency-key-window-s"] == 172_800
    assert "400-idempotency-key-required-or-invalid-header-or-malformed-json" in route["responses"]["400"]["$ref"]
    optional = route_named(document, "submit_reports")
    assert parameters_of(optional)["Idempotency-Key"]["required"] is False
    assert "idempotency-key-required" not in optional["responses"]["400"]["$ref"]


def test_an_operation_publishes_its_priorities_and_deadline(document: Document) -> None:
    parameters = parameters_of(route_named(document, "submit_order-imports"))
    assert parameters["Job-Priority"]["schema"] == {"type": "integer", "minimum": 2, "maximum": 7, "default": 5}
    assert parameters["Job-Deadline"]["x-seconds-max"] == 86_400
    assert "At most 24 hours." in parameters["Job-Deadline"]["description"]


@pytest.mark.parametrize("key", ["a", "!" * 255, '"quoted"', r'"with\"and\\"'])
def test_the_pattern_of_a_key_takes_what_is_a_key(document: Document, key: str) -> None:
    checked(document, parameters_of(route_named(document, "submit_reports"))["Idempotency-Key"]["schema"], key)


@pytest.mark.parametrize("key", ["", "with space", "!" * 256, '"unclosed', '""', "ä"])
def test_the_pattern_of_a_key_refuses_what_is_none(document: Document, key: str) -> None:
    schema = parameters_of(route_named(document, "submit_reports"))["Idempotency-Key"]["schema"]
    assert not OAS31Validator(schema).is_valid(key)


def test_examples_fit_their_schemas(document: Document) -> None:
    count = 0
    for node in nodes(document):
        if isinstance(node, dict) and isinstance(node.get("schema"), dict):
            examples = [node["example"]] if "example" in node else []
            for example in [*examples, *(one["value"] for one in node.get("examples", {}).values())]:
                checked(document, node["schema"], example)
                count += 1
    assert count > 50


def test_requests_and_results_have_examples(document: Document) -> None:
    for name in ("reports", "order-imports", "covers"):
        assert "example" in route_named(document, f"submit_{name}")["requestBody"]["content"]["application/json"]
    assert "example" in route_named(document, "result_of_reports")["responses"]["200"]["content"]["application/json"]


def record(status: Status, **changes: Any) -> JobRecord:
    fields: dict[str, Any] = {
        "id": EXAMPLE_ID,
        "tenant": "default",
        "operation": "reports",
        "operation_version": "1",
        "status": status,
        "version": 3,
        "attempt": 1,
        "counted_attempts": 1,
        "max_attempts": 5,
        "priority": 5,
        "created_at": INSTANT,
        "updated_at": INSTANT,
        "available_at": INSTANT,
        "correlation_id": "c",
        "chain_id": EXAMPLE_ID,
    }
    return JobRecord(**(fields | changes))


SUMMARY = b'{"branch":"north","value":0.5,"low_stock":[{"title":"t","units":1}],"by_shelf":null}'
RECORDS = [
    record(Status.QUEUED, attempt=0),
    record(Status.RUNNING, started_at=INSTANT, progress=Progress(None, "begun"), deadline_at=INSTANT),
    record(Status.RUNNING, started_at=INSTANT, progress=Progress(0.25, None), cancel_requested=True, cancel_reason="x"),
    record(Status.SUCCEEDED, finished_at=INSTANT, result=ResultInfo("application/json", len(SUMMARY), SUMMARY)),
    record(Status.SUCCEEDED, finished_at=INSTANT, expires_at=INSTANT, result=ResultInfo("text/csv", 9)),
    record(Status.FAILED, finished_at=INSTANT, error=ErrorInfo(ErrorCategory.TIMEOUT, "Too long.", code="slow")),
    record(Status.FAILED, error=ErrorInfo(ErrorCategory.WORKER_LOST, "Lost."), redriven_as=EXAMPLE_ID),
    record(Status.CANCELLED, finished_at=INSTANT, redrive_of=EXAMPLE_ID),
]


@pytest.mark.parametrize("job", RECORDS, ids=lambda job: job.status)
@pytest.mark.parametrize("prefix", ["", "/mounted", "https://jobs.example.org/api"])
def test_what_is_served_fits_the_job_schema(document: Document, job: JobRecord, prefix: str) -> None:
    served = json.loads(represent(job, UrlBook(prefix, {"reports": "/reports"}).of(job)))
    schema = route_named(document, "get_reports")["responses"]["200"]["content"]["application/json"]["schema"]
    checked(document, schema, served)
    described = document["components"]["schemas"]["Job"]
    assert set(served) <= set(described["properties"])
    assert set(described["required"]) <= set(served)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "done"},
        {"progress": {"fraction": 1.5, "message": None}},
        {"created_at": "2026-03-14T09:26:53Z"},
        {"updated_at": None},
        {"attempt": -1},
        {"operation": "covers"},
        {"result": {"branch": 1}},
        {"error": {"category": "unknown", "code": None, "title": "", "detail": None}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_job_schema_refuses_what_is_no_job(document: Document, changes: Document) -> None:
    schema = {"$ref": "#/components/schemas/ReportsJob", "components": document["components"]}
    validator = OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER)
    assert validator.is_valid(job_example("reports", "/reports"))
    assert not validator.is_valid(job_example("reports", "/reports") | changes)


def test_a_job_can_be_read_as_a_stream(document: Document) -> None:
    content = route_named(document, "get_reports")["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}


@pytest.mark.parametrize(
    ("name", "media_types"),
    [("reports", {"application/json", "*/*"}), ("order-imports", {"application/json"}), ("covers", {"*/*"})],
)
def test_a_result_has_the_media_types_its_operation_gives(document: Document, name: str, media_types: set[str]) -> None:
    assert set(route_named(document, f"result_of_{name}")["responses"]["200"]["content"]) == media_types


@pytest.mark.parametrize(
    ("operation_id", "statuses"),
    [
        ("submit_reports", "200 202 400 403 406 408 409 413 415 422 429 431 500 503"),
        ("list_reports", "200 400 406 429 431 500 503"),
        ("get_reports", "200 204 304 404 406 410 429 431 500 503"),
        ("result_of_reports", "200 304 404 409 410 429 431 500 503"),
        ("cancel_reports", "200 202 400 404 406 408 409 410 413 415 422 431 500 503"),
        ("erase_reports", "204 404 409 410 431 500 503"),
        ("attempts_of_reports", "200 404 406 410 429 431 500 503"),
        ("all_jobs", "200 400 406 429 431 500 503"),
        ("alive", "200 431 500"),
        ("ready", "200 431 500 503"),
        ("metrics", "200 431 500 503"),
        ("openapi", "200 304 431 500"),
        ("problem_page", "200 304 404 431 500"),
    ],
)
def test_every_answer_of_a_route_is_there(document: Document, operation_id: str, statuses: str) -> None:
    assert sorted(route_named(document, operation_id)["responses"]) == statuses.split()


def test_what_others_call_an_operation_is_said_once(document: Document) -> None:
    assert json.dumps(document).count("Azure") == 1


@pytest.mark.parametrize(
    ("public_url", "root_path", "server"),
    [
        (None, "", "/"),
        (None, "/mounted", "/mounted"),
        (None, '/a"b', "/a%22b"),
        ("https://jobs.example.org/api", "", "https://jobs.example.org/api"),
        ("https://jobs.example.org/api", "/mounted", "https://jobs.example.org/api"),
    ],
)
def test_it_names_its_server(
    public_url: Literal["https://jobs.example.org/api"] | None, root_path: str, server: str
) -> None:
    document = build_openapi(make_app(), make_settings(public_url=public_url), root_path)
    assert document["servers"] == [{"url": server}]
    example = route_named(document, "get_reports")["responses"]["200"]["content"]["application/json"]["examples"]
    assert example["running"]["value"]["status_url"].startswith("/reports" if server == "/" else f"{server}/reports")


def test_an_app_without_operations_has_a_document() -> None:
    app = make_app()
    empty = type(app)("empty")
    document = build_openapi(empty, make_settings())
    OpenAPIV31SpecValidator(document).validate()
    assert document["info"]["title"] == "empty"
