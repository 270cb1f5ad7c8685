"""One route on a page: what to send, what comes back, and a command to try it with."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from coatcheck.http.docs_markup import Child, Markup, element, inline, joined, json_block, prose
from coatcheck.http.docs_schemas import SchemaView
from coatcheck.http.openapi_answers import PROBLEM_TYPE
from coatcheck.http.openapi_job import EXAMPLE_ID
from coatcheck.http.openapi_schemas import Schema

METHODS: Final = ("get", "post", "delete")
_PLACES: Final = {"path": "Path", "query": "Query", "header": "Headers"}
_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class RouteView:
    """Shows routes of one document. `base` begins links to this service, `origin` the URLs of commands."""

    document: Mapping[str, Any]
    sent: SchemaView
    answered: SchemaView
    base: str
    origin: str

    def section(self, path: str, method: str) -> Markup:
        """The whole route under its heading."""
        item = self.document["paths"][path]
        route = item[method]
        parameters = [*item.get("parameters", []), *route.get("parameters", [])]
        return element(
            "section",
            element("h2", inline(route["summary"])),
            element("p", badge(method), element("code", path, class_="path"), class_="route"),
            prose(route["description"]),
            element("h3", "Try it"),
            [
                element("pre", element("code", command), class_="command", tabindex="0")
                for command in self.commands(path, method, route)
            ],
            self._parameters(parameters),
            self._body(route.get("requestBody")),
            element("h3", "Answers"),
            [self._answer(status, self._followed(answer)) for status, answer in route["responses"].items()],
            id=route["operationId"],
        )

    def commands(self, path: str, method: str, route: Schema) -> list[str]:
        """curl commands that call the route."""
        url = shlex.quote(self.origin + path.replace("{id}", EXAMPLE_ID).replace("{code}", "job-not-finished"))
        parts = [f"curl -i{'' if method == 'get' else ' -X ' + method.upper()} {url}", *self._credentials(route)]
        for parameter in route.get("parameters", []):
            if parameter["name"] == "Idempotency-Key":
                parts.append(f"-H {shlex.quote('Idempotency-Key: ' + parameter['example'])}")
        media = route.get("requestBody", {}).get("content", {}).get("application/json")
        if media is not None:
            sent = json.dumps(media["example"], ensure_ascii=False) if "example" in media else "…"
            parts += ["-H 'Content-Type: application/json'", f"--data {shlex.quote(sent)}"]
        commands = [" \\\n  ".join(parts)]
        if _STREAM in route["responses"].get("200", {}).get("content", {}):
            stream = f"curl -N -H 'Accept: {_STREAM}' {url}"
            commands.append(" \\\n  ".join([stream, *self._credentials(route)]))
        return commands

    def _credentials(self, route: Schema) -> list[str]:
        """The header with which a command shows who it is from."""
        schemes = self.document["components"].get("securitySchemes", {})
        named = [schemes[name] for one in route.get("security", ()) for name in one]
        if any(scheme.get("scheme") == "bearer" for scheme in named):
            return ["-H 'Authorization: Bearer …'"]
        return []

    def _followed(self, answer: Schema) -> Schema:
        if "$ref" not in answer:
            return answer
        followed: Schema = self.document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
        return followed

    def _parameters(self, parameters: list[Schema]) -> Child:
        return [
            [element("h3", title), element("ul", [self._parameter(one) for one in placed], class_="fields")]
            for place, title in _PLACES.items()
            if (placed := [one for one in parameters if one["in"] == place])
        ]

    def _parameter(self, parameter: Schema) -> Markup:
        note = "required" if parameter.get("required") else None
        schema = {**parameter["schema"], "description": parameter.get("description", "")}
        return self.sent.row(parameter["name"], schema, note)

    def _body(self, body: Schema | None) -> Child:
        if body is None:
            return None
        return [
            element("h3", "Body"),
            prose(body["description"]) if "description" in body else None,
            [self._media(media_type, media, self.sent) for media_type, media in body["content"].items()],
        ]

    def _media(self, media_type: str, media: Schema, view: SchemaView) -> Markup:
        schema = media["schema"]
        examples = media.get("examples") or ({"example": {"value": media["example"]}} if "example" in media else {})
        return element(
            "div",
            element(
                "p",
                element("code", media_type),
                element("span", view.type_text(schema), class_="type"),
                class_="media",
            ),
            element("p", inline(schema["description"])) if "description" in schema else None,
            view.bounds(schema),
            _fields(schema, view),
            [
                element("details", element("summary", one.get("summary", "Example")), json_block(one["value"]))
                for one in examples.values()
            ],
        )

    def _answer(self, status: str, answer: Schema) -> Markup:
        content = answer.get("content", {})
        is_problem = PROBLEM_TYPE in content
        return element(
            "div",
            element("span", status, class_=f"status s{status[0]}"),
            element(
                "div",
                self._problems(content[PROBLEM_TYPE]) if is_problem else prose(answer["description"]),
                self._headers(list(answer["headers"])),
                None if is_problem else [self._media(kind, media, self.answered) for kind, media in content.items()],
            ),
            class_="answer",
        )

    def _problems(self, media: Schema) -> Markup:
        return element(
            "ul",
            [
                element("li", code_link(self.base, code), " ", inline(example["summary"]))
                for code, example in media["examples"].items()
            ],
            class_="codes",
        )

    def _headers(self, names: list[str]) -> Child:
        shown = [name for name in names if name != "X-Correlation-ID"]
        if not shown:
            return None
        described = self.document["components"]["headers"]
        rows = [element("li", element("code", name), ": ", inline(described[name]["description"])) for name in shown]
        summary = joined([[element("code", name), " "] for name in shown])
        return element("details", element("summary", "Headers ", summary), element("ul", rows, class_="headers"))


def _fields(schema: Schema, view: SchemaView) -> Child:
    """The fields of a body: shown at once in a request, behind a summary in an answer."""
    fields = view.fields(schema)
    if fields is None:
        return view.inside(schema)
    return element("details", element("summary", "Fields"), fields) if view.are_answers else fields


def badge(method: str) -> Markup:
    """A method as a coloured label."""
    return element("span", method.upper(), class_=f"method {method}")


def code_link(base: str, code: str) -> Markup:
    """A problem code that leads to its page."""
    return element("a", element("code", code), href=f"{base}/problems/{code}")
