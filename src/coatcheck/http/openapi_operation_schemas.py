"""What the OpenAPI document says of one operation's own types: request, result, its job, and examples of them."""

from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from coatcheck.app import Operation
from coatcheck.http.openapi_examples import ExampleMaker, NoExample
from coatcheck.http.openapi_job import job_example
from coatcheck.http.openapi_schemas import Schema, SchemaBook, pascal, ref

JSON: Final = "application/json"
_STARTED: Final[dict[str, Any]] = {"attempt": 1, "started_at": "2026-03-14T09:26:53.612Z"}
_ENDED: Final[dict[str, Any]] = {
    "version": 7,
    "done": True,
    "updated_at": "2026-03-14T09:26:57.104Z",
    "finished_at": "2026-03-14T09:26:57.104Z",
    "expires_at": "2026-03-21T09:26:57.104Z",
}


@dataclass(frozen=True, slots=True)
class OperationSchemas:
    """An operation's schemas with examples. `result` is None where it never is JSON; an example list may be empty."""

    request: Schema
    result: Schema | None
    job: Schema
    request_example: list[Any]
    result_example: list[Any]


def operation_schemas(operation: Operation, book: SchemaBook) -> OperationSchemas:
    """Keep the operation's schemas in the book and make examples of them."""
    owner = pascal(operation.name)
    request = book.add_type(operation.request, "validation", f"{owner}Request")
    result = book.add_type(operation.result, "serialization", f"{owner}Result") if operation.result else None
    own: Schema = {"operation": {"const": operation.name}} | ({"result": result} if result is not None else {})
    return OperationSchemas(
        request=request,
        result=result,
        job=book.add(f"{owner}Job", {"allOf": [ref("Job"), {"type": "object", "properties": own}]}),
        request_example=_accepted(operation, _example(request, book)),
        result_example=_example(result, book) if result is not None else [],
    )


def job_examples(operation: Operation, schemas: OperationSchemas, base_url: str) -> dict[str, Schema]:
    """The job at four moments of its life, as OpenAPI examples by name."""

    def moment(summary: str, **changes: Any) -> Schema:
        most = operation.policy.max_attempts
        value = job_example(operation.name, base_url + operation.path, max_attempts=most, **changes)
        return {"summary": summary, "value": value}

    progress = {"fraction": 0.4, "message": "200 of 500"}
    running = {**_STARTED, "version": 4, "updated_at": "2026-03-14T09:26:55.020Z", "progress": progress}
    error = {
        "category": "dependency_unavailable",
        "code": None,
        "title": "Something this work depends on is not available",
        "detail": "The catalogue did not answer.",
    }
    kept = {"result_expires_at": _ENDED["expires_at"], **_result_fields(schemas)}
    return {
        "queued": moment("Just accepted"),
        "running": moment("Running", status="running", **running),
        "succeeded": moment("Succeeded", **_STARTED, **_ENDED, status="succeeded", **kept),
        "failed": moment("Failed", **_STARTED, **_ENDED, status="failed", error=error),
    }


def _result_fields(schemas: OperationSchemas) -> dict[str, Any]:
    if not schemas.result_example:
        return {"result_type": "application/octet-stream", "result_bytes": 48_213}
    result = schemas.result_example[0]
    return {"result_type": JSON, "result_bytes": len(to_json(result)), "result": result}


def _example(schema: Schema, book: SchemaBook) -> list[Any]:
    try:
        return [ExampleMaker(book).make(schema)]
    except NoExample:
        return []


def _accepted(operation: Operation, example: list[Any]) -> list[Any]:
    """The example of a request, only where the operation's own validators accept it."""
    try:
        for value in example:
            operation.request.validate_json(to_json(value))
    except Exception:
        # A user's validator may raise anything, and the document must still be made.
        return []
    return example
