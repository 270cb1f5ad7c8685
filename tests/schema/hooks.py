"""What schemathesis cannot know from a document: jobs that exist, and the rules that JSON Schema has no words for."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from pydantic import ValidationError
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response

from schema.operations import app

JOBS = "DOCUMENTED_JOBS"
"""Names the file with the ids of prepared jobs by the path of their operation."""

_UNKNOWN_HEADER = "x-schemathesis-unknown-property"
_prepared: dict[str, list[str]] = json.loads(Path(os.environ[JOBS]).read_text()) if JOBS in os.environ else {}
_calls: Counter[str] = Counter()
_operations = {operation.path: operation for operation in app.operations.values()}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Let most requests about one job find one, each time in another state of its life."""
    label = case.operation.label
    job_ids = _prepared.get(case.operation.path.partition("/{id}")[0], [])
    if "id" not in case.path_parameters or not job_ids or case.meta is None:
        return
    if case.meta.phase.name.value == "stateful":
        return
    _calls[label] += 1
    turn = _calls[label] % (len(job_ids) + 1)
    if turn:
        case.path_parameters["id"] = job_ids[turn - 1]


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext, failure: Failure, case: schemathesis.Case[Any], response: Response
) -> bool:
    """Let pass what no schema can say. A job may be gone, a header nobody knows is ignored, as HTTP wants it, and
    Pydantic takes more than the schema says."""
    match type(failure).__name__:
        case "RejectedPositiveData":
            return response.status_code != 410 and not _is_ruled_in_words(case, response)
        case "AcceptedNegativeData":
            return response.status_code != 410 and _UNKNOWN_HEADER not in case.headers and not _is_coerced(case)
        case _:
            return True


def _is_coerced(case: schemathesis.Case[Any]) -> bool:
    """Whether the body holds something like `true` for an integer: it is refused when it is read strictly."""
    operation = _operations.get(case.operation.path)
    if operation is None or case.method != "POST":
        return False
    try:
        operation.request.validate_json(json.dumps(case.body), strict=True)
    except ValidationError:
        return True
    return False


def _is_ruled_in_words(case: schemathesis.Case[Any], response: Response) -> bool:
    """Whether the refusal is one that descriptions name: of a foreign cursor, a past moment, a used key, U+0000."""
    match response.status_code, response.json().get("code"):
        case 400, "invalid-cursor":
            return "cursor" in case.query
        case 400, "invalid-header":
            return bool({"Job-Deadline", "Job-Start-After"} & {*case.headers})
        case 400, "malformed-json":
            return "\x00" in str(case.body) or "U+0000" in response.json()["detail"]
        case 422, "idempotency-key-reused":
            return True
        case _:
            return False
