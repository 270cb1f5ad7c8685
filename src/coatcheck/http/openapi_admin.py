"""The OpenAPI 3.1 document of the operators' API, made from the table of its routes."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import TypeAdapter

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.states import Status
from coatcheck.http.access import ADMIN
from coatcheck.http.admin_table import AdminCollection, AdminMethods, AdminRoute
from coatcheck.http.openapi import INTERFACE_VERSION, OPENAPI_VERSION
from coatcheck.http.openapi_access import Doors
from coatcheck.http.openapi_admin_schemas import admin_schemas
from coatcheck.http.openapi_answers import BODY, CORRELATED, STORED, ProblemAnswers, answer
from coatcheck.http.openapi_headers import operator_headers
from coatcheck.http.openapi_operation_schemas import JSON
from coatcheck.http.openapi_parameters import CORRELATION_ID
from coatcheck.http.openapi_schemas import Schema, SchemaBook, ref
from coatcheck.settings import Settings

_TEXT: Final[Schema] = {"type": "string"}
_INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
_QUERY: Final[dict[str, Schema]] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.PAGE_SIZE_MAX,
        "default": limits.PAGE_SIZE_DEFAULT,
    },
    "status": {"type": "string", "enum": [status.value for status in Status]},
    "category": {"type": "string", "enum": [category.value for category in ErrorCategory]},
    **dict.fromkeys(("created_since", "created_until", "finished_since", "finished_until"), _INSTANT),
}
_INTRODUCTION = """\
For whoever shows the operators' key (the setting `operator_key`) or an API key with the scope `admin`.

- What is like that already is answered like what was just made so: repeating a request is safe, but for making keys.
- A change is in force in every process within a second, and stands in the audit log.
- Every error is `application/problem+json`; decide by its `code`. `errors` points at what is wrong with what was sent.
- `HEAD` works wherever `GET` does. A method that a path does not know is answered `405` with `Allow`."""


def build_admin_openapi(
    collections: Sequence[AdminCollection], app_name: str, settings: Settings, base_url: str
) -> Schema:
    """Describe the operators' API. `base_url` begins its URLs; it may be empty."""
    book, problems, doors = SchemaBook(), ProblemAnswers(base_url), Doors(settings)
    for name, schema in admin_schemas().items():
        book.add(name, schema)
    describing = _Describing(book, problems, doors)
    paths = {path: item for collection in collections for path, item in describing.path_items(collection)}
    # No route owns this answer: it is for the methods that a path does not have.
    problems.by_status("method-not-allowed")
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": f"{app_name}: the operators' API",
            "summary": "Tenants, keys, limits, operations, jobs and dead letters, and who changed what.",
            "version": INTERFACE_VERSION,
            "description": _INTRODUCTION,
        },
        "servers": [{"url": base_url or "/"}],
        "tags": [{"name": collection.name, "description": collection.about} for collection in collections],
        "paths": paths,
        "components": {
            "schemas": dict(book.schemas),
            "headers": operator_headers(),
            "responses": dict(problems.responses),
            "securitySchemes": doors.operator_schemes,
        },
    }


class _Describing:
    """Describes collections into one book."""

    def __init__(self, book: SchemaBook, problems: ProblemAnswers, doors: Doors) -> None:
        self._book = book
        self._problems = problems
        self._doors = doors

    def path_items(self, collection: AdminCollection) -> Iterator[tuple[str, Schema]]:
        """The collection's path items, each with its path."""
        path = f"/admin/{collection.name}"
        item_path = path + "/{id}"
        named = [(path, collection.methods), (item_path, collection.item)]
        named += [(f"{item_path}/{name}", methods) for name, methods in collection.parts.items()]
        for one, methods in named:
            if methods:
                yield one, self._path_item(one, methods, collection)

    def _path_item(self, path: str, methods: AdminMethods, collection: AdminCollection) -> Schema:
        has_id = "{id}" in path
        parameters = [_parameter("id", "path", collection.id_text, _TEXT)] if has_id else []
        described = {
            method.lower(): self._operation(path, method, route, collection.name) for method, route in methods.items()
        }
        return {**({"parameters": parameters} if parameters else {}), **described}

    def _operation(self, path: str, method: str, route: AdminRoute, tag: str) -> Schema:
        words = [word.strip("{}") for word in path.split("/")[2:]]
        content = {JSON: {"schema": ref(route.shape)}}
        answers = {
            str(status): answer(text, _headers_of(status), content) for status, text in sorted(route.answers.items())
        }
        query = [_parameter(name, "query", text, _QUERY.get(name, _TEXT)) for name, text in route.query.items()]
        return {
            "operationId": "_".join((method.lower(), *words)),
            "tags": [tag],
            "summary": route.summary,
            **self._doors.security(ADMIN),
            "parameters": [*query, CORRELATION_ID],
            **self._body(route),
            "responses": {**answers, **self._problems.by_status(*self._codes(path, method, route))},
        }

    def _body(self, route: AdminRoute) -> Schema:
        if route.body is None:
            return {}
        schema = self._book.add_type(TypeAdapter(route.body), "validation", route.body.__name__)
        is_needed = bool(self._book.resolve(schema).get("required"))
        return {"requestBody": {"required": is_needed, "content": {JSON: {"schema": schema}}}}

    def _codes(self, path: str, method: str, route: AdminRoute) -> Iterator[str]:
        yield from STORED
        yield from self._doors.codes(ADMIN)
        yield from route.codes
        # Where operators have no key, nothing is there.
        yield "not-found"
        if method == "GET" or route.query:
            yield "invalid-parameter"
        if "cursor" in route.query:
            yield "invalid-cursor"
        if route.body is not None:
            yield from BODY


def _headers_of(status: int) -> tuple[str, ...]:
    return (*CORRELATED, "Cache-Control", *(("Location",) if status == 201 else ()))


def _parameter(name: str, where: str, text: str, schema: Schema) -> Schema:
    needed = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, **needed, "description": text, "schema": schema}
