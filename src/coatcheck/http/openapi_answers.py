"""Answers as OpenAPI describes them: headers by reference, problems by the codes that a route can give."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from coatcheck.core.problems import PROBLEMS
from coatcheck.http.openapi_job import EXAMPLE_CORRELATION_ID, EXAMPLE_ID
from coatcheck.http.openapi_schemas import Schema, ref

PROBLEM_TYPE: Final = "application/problem+json"
CORRELATED: Final = ("X-Correlation-ID",)
RATED: Final = ("RateLimit-Policy", "RateLimit")
UNSTORED: Final = ("headers-too-large", "internal-error")
STORED: Final = (*UNSTORED, "store-unavailable")
BODY: Final = ("malformed-json", "request-timeout", "payload-too-large", "unsupported-media-type", "invalid-request")
_RETRIED: Final = "job-not-finished"


def answer(description: str, headers: Iterable[str] = CORRELATED, content: Mapping[str, Any] | None = None) -> Schema:
    """One answer of a route. `content`: media types with their schemas and examples; None: no body."""
    made: Schema = {"description": description, "headers": header_refs(headers)}
    return made if content is None else {**made, "content": dict(content)}


def header_refs(names: Iterable[str]) -> Schema:
    """References to answer headers by name."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def example_problem(code: str, problem_url: str, status: int | None = None) -> dict[str, Any]:
    """A body that a client may get with this code."""
    kind = PROBLEMS[code]
    body: dict[str, Any] = {
        "type": problem_url,
        "title": kind.title,
        "status": status or kind.status,
        "detail": kind.meaning,
        "code": code,
        "correlation_id": EXAMPLE_CORRELATION_ID,
    }
    if code == "job-expired" and status == 409:
        body["status_url"] = problem_url.replace("/problems/job-expired", f"/v1/reports/{EXAMPLE_ID}")
    if code == "invalid-request":
        body["errors"] = [{"pointer": "/branch", "detail": "Field required"}]
    return body


class ProblemAnswers:
    """The problem answers of all routes, each distinct one kept once as a component."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._responses: dict[str, Schema] = {}

    @property
    def responses(self) -> Mapping[str, Schema]:
        """All problem answers by component name, sorted."""
        return dict(sorted(self._responses.items()))

    def by_status(self, *codes: str, at: Mapping[str, int] = MappingProxyType({})) -> dict[str, Schema]:
        """References to the answers of a route that can give these codes, by HTTP status.

        `at` names the status of codes that have another one here than usual.
        """
        gathered: defaultdict[int, set[str]] = defaultdict(set)
        for code in codes:
            gathered[at.get(code, PROBLEMS[code].status)].add(code)
        return {str(status): self._keep(status, sorted(gathered[status])) for status in sorted(gathered)}

    def _keep(self, status: int, codes: list[str]) -> Schema:
        name = f"{status}-{'-or-'.join(codes)}"
        self._responses.setdefault(name, self._problem(status, codes))
        return {"$ref": f"#/components/responses/{name}"}

    def _problem(self, status: int, codes: list[str]) -> Schema:
        narrowed = {"properties": {"status": {"const": status}, "code": {"enum": codes}}}
        examples = {code: {"summary": PROBLEMS[code].title, "value": self._example(status, code)} for code in codes}
        content = {PROBLEM_TYPE: {"schema": {"allOf": [ref("Problem"), narrowed]}, "examples": examples}}
        description = "\n\n".join(f"`{code}`: {PROBLEMS[code].meaning}" for code in codes)
        return answer(description, _headers(status, codes), content)

    def _example(self, status: int, code: str) -> dict[str, Any]:
        return example_problem(code, f"{self._base_url}/problems/{code}", status)


def _headers(status: int, codes: list[str]) -> tuple[str, ...]:
    if status == 409 and "job-expired" in codes:
        return (*CORRELATED, "Location")
    if status == 401:
        return (*CORRELATED, "WWW-Authenticate")
    if status == 405:
        return (*CORRELATED, "Allow")
    if status == 429:
        return (*CORRELATED, *RATED, "Retry-After")
    if status == 503 or _RETRIED in codes:
        return (*CORRELATED, "Retry-After")
    return CORRELATED
