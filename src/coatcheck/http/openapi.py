"""The OpenAPI 3.1 document of a service: what its clients can send, and everything they can be answered.

The same app and settings give the same document, byte for byte.
"""

from typing import Final
from urllib.parse import quote

from coatcheck.app import App
from coatcheck.http.openapi_access import Doors
from coatcheck.http.openapi_answers import ProblemAnswers
from coatcheck.http.openapi_headers import answer_headers
from coatcheck.http.openapi_job import own_schemas
from coatcheck.http.openapi_operation_schemas import operation_schemas
from coatcheck.http.openapi_operations import OperationRoutes
from coatcheck.http.openapi_parameters import span
from coatcheck.http.openapi_schemas import Schema, SchemaBook
from coatcheck.http.openapi_service import PROBLEM_KIND, SERVICE_TAG, service_paths
from coatcheck.settings import Settings

OPENAPI_VERSION: Final = "3.1.0"
INTERFACE_VERSION: Final = "1"

_PATH_SAFE = "/-._~!$&'()*+,;=:@"

_SUMMARY = "Hand in work, keep the ticket, come back for the result."

_INTRODUCTION = """\
A `POST` to an operation answers `202` once the job is durable, with the job's URL in `Location`. Read that URL until \
`done` is true - by polling, by waiting (`Prefer: wait={wait_max:g}` at most) or as a live stream - and fetch the \
result from `result_url`.

- A job is `queued`, then `running`, and ends `succeeded`, `failed` or `cancelled`. An end is final.
- Send an `Idempotency-Key` and any request to hand in work can be repeated safely.
- Work is done at least once. Every error is `application/problem+json`; decide by its `code`.
- `HEAD` works wherever `GET` does. A method that a path does not know is answered `405` with `Allow`.
- Times are RFC 3339 in UTC with milliseconds.

Google and Azure say *operation* for what we call a *job*; here an operation is a kind of work."""


def base_url_of(settings: Settings, root_path: str) -> str:
    """What begins the URLs that a client is given: `public_url`, or else the mount point."""
    return settings.public_url or quote(root_path.rstrip("/"), safe=_PATH_SAFE)


def build_openapi(app: App, settings: Settings, root_path: str = "") -> Schema:
    """Describe an app's service. `root_path`: where it is mounted, which `public_url` overrules."""
    base_url = base_url_of(settings, root_path)
    book, problems, doors = SchemaBook(), ProblemAnswers(base_url), Doors(settings)
    for name, schema in own_schemas(has_views=doors.has_views).items():
        book.add(name, schema)
    book.add("ProblemKind", PROBLEM_KIND)
    paths: dict[str, Schema] = {}
    for operation in app.operations.values():
        schemas = operation_schemas(operation, book)
        paths |= OperationRoutes(operation, schemas, problems, doors, base_url).path_items()
    paths |= service_paths(problems, doors)
    # No route owns this answer: it is for the methods that a path does not have.
    problems.by_status("method-not-allowed")
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": app.name,
            "summary": _SUMMARY,
            "version": INTERFACE_VERSION,
            "description": _INTRODUCTION.format(wait_max=settings.wait_max_s),
        },
        "servers": [{"url": base_url or "/"}],
        "tags": _tags(app),
        "paths": paths,
        "components": {
            "schemas": dict(book.schemas),
            "headers": answer_headers(doors),
            "responses": dict(problems.responses),
            **({"securitySchemes": doors.schemes} if doors.schemes else {}),
        },
    }


def _tags(app: App) -> list[Schema]:
    operations = [
        {"name": operation.name, "description": operation.summary, "x-policy": _policy_text(app, operation.name)}
        for operation in app.operations.values()
    ]
    return [*operations, {"name": SERVICE_TAG, "description": "What every service has, whatever its operations."}]


def _policy_text(app: App, name: str) -> Schema:
    policy = app.operations[name].policy
    times = {
        "timeout of an attempt": policy.timeout_s,
        "latest first start": policy.queue_limit_s,
        "deadline, if none is sent": policy.deadline_default_s,
        "largest deadline": policy.deadline_max_s,
        "a key is remembered for": policy.key_window_s,
        "succeeded jobs are kept for": policy.retention.succeeded_s,
        "failed jobs are kept for": policy.retention.failed_s,
        "cancelled jobs are kept for": policy.retention.cancelled_s,
        "results are kept for": policy.retention.result_s,
    }
    return {
        "attempts": policy.max_attempts,
        "idempotency key": "required" if policy.is_key_required else "optional",
        "largest payload": f"{policy.payload_bytes_max:,} bytes",
        "largest result": f"{policy.result_bytes_max:,} bytes",
        **{name: span(time_s) for name, time_s in times.items() if time_s is not None},
    }
