"""The routes every service has: all jobs, health, metrics, this document, its viewer and the problem pages."""

from typing import Any, Final

from coatcheck.core.problems import PROBLEMS
from coatcheck.http.access import METRICS, READ
from coatcheck.http.openapi_access import Doors
from coatcheck.http.openapi_answers import CORRELATED, RATED, UNSTORED, ProblemAnswers, answer
from coatcheck.http.openapi_operation_schemas import JSON
from coatcheck.http.openapi_operations import LIST_CODES
from coatcheck.http.openapi_parameters import CORRELATION_ID, IF_NONE_MATCH, PAGING
from coatcheck.http.openapi_schemas import Schema, ref

SERVICE_TAG: Final = "Service"
PLAIN: Final[dict[str, Any]] = {"text/plain": {"schema": {"type": "string"}}}
HTML: Final[dict[str, Any]] = {"text/html": {"schema": {"type": "string"}}}
_KEPT: Final = (*CORRELATED, "ETag", "Cache-Control")
_UNCHANGED: Final = "It has not changed."
_UNKEPT: Final = (*CORRELATED, "Cache-Control")
_CODE: Final[Schema] = {
    "name": "code",
    "in": "path",
    "required": True,
    "description": "A problem's `code`.",
    "schema": {"type": "string"},
    "example": "job-not-finished",
}
PROBLEM_KIND: Final[Schema] = {
    "type": "object",
    "description": "What a problem code means.",
    "required": ["code", "type", "title", "statuses", "meaning", "remedy"],
    "properties": {
        "code": {"type": "string", "enum": sorted(PROBLEMS)},
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "statuses": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 400, "maximum": 599}},
        "meaning": {"type": "string", "description": "When it is given."},
        "remedy": {"type": "string", "description": "What the client should do."},
    },
}
PROBLEM_INDEX: Final[Schema] = {
    "type": "object",
    "required": ["problems"],
    "properties": {"problems": {"type": "array", "items": ref("ProblemKind")}},
}


def service_paths(problems: ProblemAnswers, doors: Doors) -> dict[str, Schema]:
    """The path items of the service's own routes by path."""
    return {
        "/v1/jobs": {"get": _all_jobs(problems, doors)},
        "/livez": {"get": _live(problems)},
        "/readyz": {"get": _ready(problems)},
        "/metrics": {"get": _metrics(problems, doors)},
        "/openapi.json": {"get": _openapi(problems)},
        "/docs": {"get": _docs(problems)},
        "/problems": {"get": _problem_index(problems)},
        "/problems/{code}": {"parameters": [_CODE], "get": _problem_page(problems)},
    }


def _route(operation_id: str, summary: str, description: str) -> Schema:
    return {"operationId": operation_id, "tags": [SERVICE_TAG], "summary": summary, "description": description}


def _all_jobs(problems: ProblemAnswers, doors: Doors) -> Schema:
    content = {JSON: {"schema": ref("JobList")}}
    return {
        **_route("all_jobs", "List the jobs of all operations", "Your jobs, newest first, a page at a time."),
        **doors.security(READ),
        "parameters": [*PAGING, CORRELATION_ID],
        "responses": {
            "200": answer("One page.", (*CORRELATED, *RATED, "Cache-Control", "Vary", "Link"), content),
            **problems.by_status(*LIST_CODES, *doors.codes(READ)),
        },
    }


def _live(problems: ProblemAnswers) -> Schema:
    return {
        **_route("alive", "Is the process alive?", "Restart the process when this does not answer."),
        "responses": {"200": answer("It is.", _UNKEPT, PLAIN), **problems.by_status(*UNSTORED)},
    }


def _ready(problems: ProblemAnswers) -> Schema:
    text = (
        "Send requests here while this answers `200`. It asks the store whether it answers, and depends neither on "
        "workers nor on room on the disk, since jobs can be read without either."
    )
    return {
        **_route("ready", "Do requests belong here?", text),
        "responses": {
            "200": answer("They do.", _UNKEPT, PLAIN),
            **problems.by_status("draining", "store-unavailable", *UNSTORED),
        },
    }


def _metrics(problems: ProblemAnswers, doors: Doors) -> Schema:
    return {
        **_route("metrics", "Metrics", "Counters, gauges and histograms for Prometheus."),
        **doors.security(METRICS),
        "responses": {
            "200": answer("The metrics in Prometheus' text format.", _UNKEPT, PLAIN),
            **problems.by_status("saturated", *UNSTORED, *doors.codes(METRICS)),
        },
    }


def _openapi(problems: ProblemAnswers) -> Schema:
    return {
        **_route("openapi", "This document", "OpenAPI 3.1, made from the declared operations."),
        "parameters": [IF_NONE_MATCH],
        "responses": {
            "200": answer("The document.", _KEPT, {JSON: {"schema": {"type": "object"}}}),
            "304": answer(_UNCHANGED, _KEPT),
            **problems.by_status(*UNSTORED),
        },
    }


def _docs(problems: ProblemAnswers) -> Schema:
    return {
        **_route("docs", "This document as pages", "It loads nothing from other hosts and needs no scripts."),
        "parameters": [IF_NONE_MATCH],
        "responses": {
            "200": answer("The overview, which links to a page for each operation.", _KEPT, HTML),
            "304": answer(_UNCHANGED, _KEPT),
            **problems.by_status(*UNSTORED),
        },
    }


def _problem_index(problems: ProblemAnswers) -> Schema:
    content = {**HTML, JSON: {"schema": PROBLEM_INDEX}}
    return {
        **_route("problem_index", "All problem codes", "As a page or, with `Accept: application/json`, as data."),
        "parameters": [IF_NONE_MATCH],
        "responses": {
            "200": answer("Every code with its meaning.", (*_KEPT, "Vary"), content),
            "304": answer(_UNCHANGED, (*_KEPT, "Vary")),
            **problems.by_status(*UNSTORED),
        },
    }


def _problem_page(problems: ProblemAnswers) -> Schema:
    content = {**HTML, JSON: {"schema": ref("ProblemKind")}}
    return {
        **_route("problem_page", "What a problem code means", "The `type` of every problem is the URL of its page."),
        "parameters": [IF_NONE_MATCH],
        "responses": {
            "200": answer("Its meaning and its remedy.", (*_KEPT, "Vary"), content),
            "304": answer(_UNCHANGED, (*_KEPT, "Vary")),
            **problems.by_status("not-found", *UNSTORED),
        },
    }
