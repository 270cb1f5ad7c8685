"""The schemas of what Coatcheck itself answers: the job, its attempts, lists and problems."""

from typing import Any, Final

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.problems import PROBLEMS
from coatcheck.core.states import Status
from coatcheck.http.openapi_schemas import Schema, ref
from coatcheck.http.openapi_shapes import INSTANT, JOB_ID, URL, closed, moment, or_null, text

EXAMPLE_ID: Final = "job_01jnq8vd3k7m2x9r4t6w8y0zab1c"
EXAMPLE_CORRELATION_ID: Final = "3f6d2c1e9b8a4f70"

JOB_ERROR: Final[Schema] = closed(
    "Why a job or an attempt failed.",
    {
        "category": {
            "type": "string",
            "enum": [category.value for category in ErrorCategory],
            "description": "The one thing to decide by.",
        },
        "code": or_null(text("The operation's own name for the failure.", limits.ERROR_CODE_CHARS_MAX)),
        "title": {"type": "string", "description": "What the category means, for people."},
        "detail": or_null(text("What happened this time, for people.", limits.ERROR_DETAIL_CHARS_MAX)),
    },
)

PROGRESS: Final[Schema] = closed(
    "How far the running attempt is.",
    {
        "fraction": or_null({"type": "number", "minimum": 0, "maximum": 1}, "From 0 to 1; null where unknown."),
        "message": or_null(text("What is being done, for people.", limits.PROGRESS_MESSAGE_CHARS_MAX)),
    },
)

_JOB_TIMES: Final[dict[str, Schema]] = {
    "created_at": moment("When the job was accepted."),
    "started_at": or_null(INSTANT, "When its first attempt started; null before."),
    "finished_at": or_null(INSTANT, "When it reached its final status; null before."),
    "updated_at": moment("When it last changed."),
    "available_at": moment("The earliest start of the next attempt: later than now while it waits."),
    "deadline_at": or_null(INSTANT, "When the work is of no use any more; null without a deadline."),
    "expires_at": or_null(INSTANT, "When the finished job will be gone; null before it is finished."),
    "result_expires_at": or_null(INSTANT, "When the result will be gone, never later than the job."),
}

_JOB_FIELDS: Final[dict[str, Schema]] = {
    "id": JOB_ID,
    "operation": {"type": "string", "description": "The kind of work."},
    "status": {
        "type": "string",
        "enum": [status.value for status in Status],
        "description": "`succeeded`, `failed` and `cancelled` are final.",
    },
    "done": {"type": "boolean", "description": "True exactly when the status is final."},
    "version": {"type": "integer", "minimum": 1, "description": "Rises with every stored change, progress included."},
    "attempt": {
        "type": "integer",
        "minimum": 0,
        "maximum": limits.STARTS_MAX,
        "description": "Starts so far; 0 while it never started.",
    },
    "max_attempts": {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.STARTS_MAX,
        "description": "Starts that may count. One given back at a shutdown does not count.",
    },
    "progress": or_null(ref("JobProgress"), "Null while nothing was reported."),
    **_JOB_TIMES,
    "cancel_requested": {"type": "boolean", "description": "Whether the job was told to stop."},
    "cancel_reason": or_null(text("The reason given with it.", limits.CANCEL_REASON_CHARS_MAX)),
    "error": or_null(ref("JobError"), "Why the job failed; null otherwise."),
    "correlation_id": text("The correlation id of the submission.", limits.CORRELATION_ID_CHARS_MAX),
    "redrive_of": or_null(JOB_ID, "The failed job this one runs again; null for a job of its own."),
    "redriven_as": or_null(JOB_ID, "The new job that runs this failed one again; null if there is none."),
    "status_url": {**URL, "description": "This job."},
    "result_url": {**URL, "description": "Its result, once it succeeded."},
    "cancel_url": {**URL, "description": "Where to ask it to stop."},
}

_RESULT_FIELDS: Final[dict[str, Schema]] = {
    "result_type": text("The result's media type. Only once the job succeeded.", limits.CONTENT_TYPE_CHARS_MAX),
    "result_bytes": {"type": "integer", "minimum": 0, "description": "Its size. Only once the job succeeded."},
    "result": {
        "description": f"The result, where it is JSON of at most {limits.INLINE_RESULT_BYTES_MAX:,} bytes; else absent."
    },
}

JOB: Final[Schema] = closed(
    "One accepted piece of work. Its fields are always there, but for those of a result.",
    {**_JOB_FIELDS, **_RESULT_FIELDS},
    required=list(_JOB_FIELDS),
)

JOB_LIST: Final[Schema] = closed(
    "One page of jobs, newest first.",
    {
        "jobs": {"type": "array", "maxItems": limits.PAGE_SIZE_MAX, "items": ref("Job")},
        "next_cursor": or_null(text("Where the next page begins; null on the last one.", limits.CURSOR_CHARS_MAX)),
    },
)

ATTEMPT: Final[Schema] = closed(
    "One start of a job.",
    {
        "number": {"type": "integer", "minimum": 1, "maximum": limits.STARTS_MAX},
        "started_at": INSTANT,
        "finished_at": or_null(INSTANT, "Null while it runs."),
        "outcome": {
            "type": ["string", "null"],
            "enum": ["succeeded", "failed", "cancelled", "retry_later", "released", "worker_lost", None],
            "description": "How it ended; null while it runs.",
        },
        "error": or_null(ref("JobError"), "Null unless it failed."),
    },
)

ATTEMPTS: Final[Schema] = closed(
    "Every start of a job, oldest first.",
    {"attempts": {"type": "array", "maxItems": limits.ATTEMPTS_LISTED_MAX, "items": ref("Attempt")}},
)

CANCELLATION: Final[Schema] = {
    "type": "object",
    "description": "An optional word on why.",
    "additionalProperties": False,
    "properties": {"reason": or_null({"type": "string", "maxLength": limits.CANCEL_REASON_CHARS_MAX})},
}


def problem() -> Schema:
    """The one shape of every error (RFC 9457)."""
    return closed(
        "What went wrong, in the one shape every error has (RFC 9457). Decide by `code`.",
        {
            "type": {**URL, "description": "A page that explains the code."},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What was wrong this time, for people."},
            "code": {"type": "string", "enum": sorted(PROBLEMS)},
            "correlation_id": {"type": "string", "maxLength": limits.CORRELATION_ID_CHARS_MAX},
            "status_url": {**URL, "description": "For `job-expired` of a key: the URL of the job it stood for."},
            "errors": {"type": "array", "maxItems": limits.INPUT_ERRORS_LISTED_MAX, "items": ref("InputError")},
        },
        required=["type", "title", "status", "detail", "code", "correlation_id"],
    )


INPUT_ERROR: Final[Schema] = closed(
    "One thing wrong with the input.",
    {
        "pointer": {"type": "string", "description": "Where in the body, as a JSON Pointer (RFC 6901)."},
        "detail": {"type": "string", "description": "What is wrong there."},
    },
)


VIEW_TOKEN_REQUEST: Final[Schema] = {
    "type": "object",
    "description": "How long the token is to be good.",
    "additionalProperties": False,
    "properties": {
        "lifetime_s": or_null(
            {"type": "integer", "minimum": 1},
            f"In seconds; {limits.VIEW_TOKEN_S_DEFAULT} where it is left out, and never more than"
            f" {limits.VIEW_TOKEN_S_MAX}.",
        )
    },
}

VIEW_TOKEN: Final[Schema] = closed(
    "A token that reads one job.",
    {
        "token": {"type": "string", "description": "Send it as `Authorization: Bearer`, never in a URL."},
        "expires_at": moment("When it ends by itself."),
    },
)


def own_schemas(has_views: bool) -> dict[str, Schema]:
    """Coatcheck's own components, by name. `has_views`: there are view tokens."""
    views = {"ViewTokenRequest": VIEW_TOKEN_REQUEST, "ViewToken": VIEW_TOKEN}
    return {
        "Job": JOB,
        "JobProgress": PROGRESS,
        "JobError": JOB_ERROR,
        "JobList": JOB_LIST,
        "Attempt": ATTEMPT,
        "AttemptList": ATTEMPTS,
        "Cancellation": CANCELLATION,
        "Problem": problem(),
        "InputError": INPUT_ERROR,
        **(views if has_views else {}),
    }


def job_example(operation: str, path: str, **changes: Any) -> dict[str, Any]:
    """A queued job as a client sees it right after its acceptance, with `changes`."""
    at = "2026-03-14T09:26:53.589Z"
    url = f"{path}/{EXAMPLE_ID}"
    queued = dict.fromkeys(_JOB_FIELDS) | {
        "id": EXAMPLE_ID,
        "operation": operation,
        "status": "queued",
        "done": False,
        "version": 1,
        "attempt": 0,
        "max_attempts": 5,
        "created_at": at,
        "updated_at": at,
        "available_at": at,
        "cancel_requested": False,
        "correlation_id": EXAMPLE_CORRELATION_ID,
        "status_url": url,
        "result_url": f"{url}/result",
        "cancel_url": f"{url}/cancel",
    }
    return queued | changes
