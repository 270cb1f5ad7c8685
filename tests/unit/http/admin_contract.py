"""What the operators' document promises of each answer, held against what is answered."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from openapi_schema_validator import OAS31Validator

from coatcheck.http.openapi_answers import PROBLEM_TYPE

JSON = "application/json"
METHODS = ("get", "post", "put", "patch", "delete")
Document = dict[str, Any]


class AdminContract:
    """Checks requests and answers of the operators' API. A field that is not described is a fault."""

    def __init__(self, document: Document) -> None:
        self.document = document
        schemas = document["components"]["schemas"]
        closed = {name: _closed(schema) if name != "Problem" else schema for name, schema in schemas.items()}
        self._components = {**document["components"], "schemas": closed}

    def routes(self) -> Iterator[tuple[str, str, Document]]:
        """Every path with each of its methods and what is said of it."""
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield path, method, item[method]

    def check(self, answer: httpx.Response, body: Any) -> None:
        """Hold an answer against the document, and what was sent if it was taken. What is no route is passed over."""
        url = urlsplit(str(answer.request.url))
        route = self._find(url.path, answer.request.method.lower())
        if route is None:
            assert answer.status_code in (404, 405)
            return
        status = str(answer.status_code)
        assert status in route["responses"], (url.path, status)
        promised = self._resolved(route["responses"][status])
        for name, header in promised["headers"].items():
            assert name in answer.headers or not self._resolved(header).get("required"), name
        self._fits(promised["content"][PROBLEM_TYPE if answer.is_error else JSON]["schema"], answer.json())
        if answer.is_success:
            known = {parameter["name"] for parameter in route["parameters"] if parameter["in"] == "query"}
            assert {name for name, _ in parse_qsl(url.query, keep_blank_values=True)} <= known
            if body is not None:
                self._fits(route["requestBody"]["content"][JSON]["schema"], body)

    def body_members(self, route: Document) -> Mapping[str, Any] | None:
        """The members of the body that a route reads; None: it reads none, or any JSON."""
        if "requestBody" not in route:
            return None
        schema = self._resolved(route["requestBody"]["content"][JSON]["schema"])
        members: Mapping[str, Any] | None = schema.get("properties", {}) if schema.get("type") == "object" else None
        return members

    def _find(self, path: str, method: str) -> Document | None:
        paths = self.document["paths"]
        steps = path.split("/")
        patterns = [path] if path in paths else [one for one in paths if _matches(one.split("/"), steps)]
        assert len(patterns) <= 1
        found: Document | None = paths[patterns[0]].get(method) if patterns else None
        return found

    def _resolved(self, value: Document) -> Document:
        while "$ref" in value:
            target: Any = self.document
            for step in value["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            value = target
        return value

    def _fits(self, schema: Document, instance: Any) -> None:
        whole = {**schema, "components": self._components}
        validator = OAS31Validator(whole, format_checker=OAS31Validator.FORMAT_CHECKER)
        faults = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(instance)]
        assert faults == [], faults


def _closed(schema: Document) -> Document:
    if "oneOf" in schema:
        return {"oneOf": [_closed(one) for one in schema["oneOf"]]}
    return {"additionalProperties": False, **schema} if "properties" in schema else schema


def _matches(pattern: list[str], steps: list[str]) -> bool:
    return len(pattern) == len(steps) and all(one in ("{id}", step) for one, step in zip(pattern, steps, strict=True))
