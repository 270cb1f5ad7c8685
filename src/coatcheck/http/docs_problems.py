"""The problem pages: what a code means, when it comes, and what its reader can do about it."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from coatcheck.core.problems import PROBLEMS, ProblemKind
from coatcheck.http.docs_markup import Child, Markup, element, inline, json_block
from coatcheck.http.docs_routes import METHODS, badge, code_link
from coatcheck.http.openapi_answers import PROBLEM_TYPE, example_problem
from coatcheck.http.openapi_schemas import Schema
from coatcheck.http.openapi_service import SERVICE_TAG


def problem_data(kind: ProblemKind, base_url: str) -> dict[str, Any]:
    """A code's meaning as JSON."""
    return {
        "code": kind.code,
        "type": f"{base_url}/problems/{kind.code}",
        "title": kind.title,
        "statuses": list(kind.statuses),
        "meaning": kind.meaning,
        "remedy": kind.remedy,
    }


def problem_index(base: str) -> Child:
    """All codes by status."""
    by_status: defaultdict[int, list[ProblemKind]] = defaultdict(list)
    for kind in PROBLEMS.values():
        by_status[kind.status].append(kind)
    return [
        element("h1", "Problem codes"),
        element(
            "p",
            "Every error has the media type ",
            element("code", PROBLEM_TYPE),
            " and a ",
            element("code", "code"),
            ": one for each decision that a client can take.",
            class_="lead",
        ),
        [
            element(
                "div",
                element("span", str(status), class_=f"status s{str(status)[0]}"),
                element("ul", [_line(kind, base) for kind in by_status[status]], class_="codes"),
                class_="answer",
            )
            for status in sorted(by_status)
        ],
    ]


def _line(kind: ProblemKind, base: str) -> Markup:
    return element("li", code_link(base, kind.code), " ", inline(kind.title))


def problem_page(kind: ProblemKind, document: Mapping[str, Any], base: str, base_url: str) -> Child:
    """One code."""
    return [
        element("p", element("a", "Problem codes", href=f"{base}/problems"), class_="crumb"),
        element("h1", kind.title),
        element(
            "p",
            [element("span", str(status), class_=f"status s{str(status)[0]}") for status in kind.statuses],
            element("code", kind.code, class_="path"),
            class_="route",
        ),
        element("h2", "What it means"),
        element("p", inline(kind.meaning)),
        element("h2", "What to do"),
        element("p", inline(kind.remedy)),
        element("h2", "Example"),
        json_block(example_problem(kind.code, f"{base_url}/problems/{kind.code}")),
        _where(kind.code, document, base),
    ]


def _where(code: str, document: Mapping[str, Any], base: str) -> Child:
    rows = [
        element("li", badge(method), element("a", element("code", path), href=route_url(base, route)))
        for path, item in document["paths"].items()
        for method in METHODS
        if (route := item.get(method)) is not None and code in _codes(route, document)
    ]
    if not rows:
        return None
    return [element("h2", "Where it comes"), element("ul", rows, class_="where")]


def _codes(route: Schema, document: Mapping[str, Any]) -> set[str]:
    responses = document["components"]["responses"]
    names = [answer["$ref"].rpartition("/")[2] for answer in route["responses"].values() if "$ref" in answer]
    return {code for name in names for code in responses[name]["content"][PROBLEM_TYPE]["examples"]}


def route_url(base: str, route: Schema) -> str:
    """Where a route is described."""
    return f"{page_url(base, route['tags'][0])}#{route['operationId']}"


def page_url(base: str, tag: str) -> str:
    """The page of a tag: an operation's, or the service's own."""
    return f"{base}/docs/{'service' if tag == SERVICE_TAG else f'operations/{tag}'}"
