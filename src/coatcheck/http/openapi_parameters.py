"""Every parameter of the contract's requests - headers, queries, the job's id - as OpenAPI describes it."""

from typing import Final

from coatcheck.core import limits
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.http.openapi_job import EXAMPLE_ID
from coatcheck.http.openapi_schemas import Schema

_UNITS = ((172_800, 86_400, "day"), (3_600, 3_600, "hour"), (60, 60, "minute"))
_INSTANT_TEXT = "An RFC 3339 instant with an offset, or seconds from now."

JOB_ID: Final[Schema] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The job's id.",
    "schema": {"type": "string"},
    "example": EXAMPLE_ID,
}
PAGING: Final[tuple[Schema, ...]] = (
    {
        "name": "status",
        "in": "query",
        "description": "Only jobs of this status.",
        "schema": {"type": "string", "enum": [status.value for status in Status]},
    },
    {
        "name": "limit",
        "in": "query",
        "description": "How many jobs a page holds at most.",
        "schema": {
            "type": "integer",
            "minimum": 1,
            "maximum": limits.PAGE_SIZE_MAX,
            "default": limits.PAGE_SIZE_DEFAULT,
        },
    },
    {
        "name": "cursor",
        "in": "query",
        "description": "`next_cursor` of the page before, with that page's other parameters.",
        "schema": {"type": "string", "maxLength": limits.CURSOR_CHARS_MAX},
    },
)

PREFER: Final[Schema] = {
    "name": "Prefer",
    "in": "header",
    "description": (
        "`wait=N` holds the answer up to N seconds; `respond-async` asks for an answer at once (RFC 7240). "
        "Unknown or malformed preferences are ignored."
    ),
    "schema": {"type": "string"},
    "examples": {"wait": {"value": "wait=10"}, "both": {"value": "respond-async, wait=10"}},
}

CORRELATION_ID: Final[Schema] = {
    "name": "X-Correlation-ID",
    "in": "header",
    "description": (
        "Your name for this request, 1 to 128 visible ASCII characters; it comes back in the answer and stands in every"
        " log line about the job. Any other value is replaced by a new one."
    ),
    "schema": {"type": "string"},
}

TRACEPARENT: Final[Schema] = {
    "name": "traceparent",
    "in": "header",
    "description": "W3C trace context: the work becomes part of this trace. An invalid value is ignored.",
    "schema": {"type": "string"},
    "example": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}

IF_NONE_MATCH: Final[Schema] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` you hold. The answer is `304` without a body while nothing has changed since.",
    "schema": {"type": "string"},
}

LAST_EVENT_ID: Final[Schema] = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": (
        "For `text/event-stream` only: the `id` of the last event you saw, a number. The stream goes on after it. "
        "Any other value is ignored."
    ),
    "schema": {"type": "string"},
    "example": "4",
}


def span(duration_s: float) -> str:
    """A duration in words for people: `90 seconds`, `24 hours`, `7 days`."""
    for least_s, unit_s, unit in _UNITS:
        if duration_s >= least_s and duration_s % unit_s == 0:
            return f"{duration_s / unit_s:g} {unit}{'s' if duration_s != unit_s else ''}"
    return f"{duration_s:g} seconds"


def submission_headers(policy: Policy) -> list[Schema]:
    """The request headers of handing in work, with the ranges this operation allows."""
    return [
        _idempotency_key(policy),
        PREFER,
        CORRELATION_ID,
        TRACEPARENT,
        _instant(
            "Job-Start-After",
            f"Do not start before this moment. {_INSTANT_TEXT} At most {span(limits.START_AFTER_S_MAX)} ahead.",
            limits.START_AFTER_S_MAX,
        ),
        _instant("Job-Deadline", _deadline_text(policy), policy.deadline_max_s),
        _priority(policy),
    ]


def _idempotency_key(policy: Policy) -> Schema:
    need = "Required here" if policy.is_key_required else "Optional, but without it a repeated request is new work"
    most = limits.IDEMPOTENCY_KEY_CHARS_MAX
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": policy.is_key_required,
        "description": (
            f"Makes repeating this request safe: the same key and body give the same job. {need}. 1 to {most} visible "
            "characters, quoted or bare (both are the same key). A key is remembered for "
            f"{span(policy.key_window_s)} from its first use; the same key with another body is refused with `422`."
        ),
        "schema": {
            "type": "string",
            "pattern": rf'^("([!#-\[\]-~]|\\["\\]){{1,{most}}}"|[!#-~][!-~]{{0,{most - 1}}})$',
        },
        "example": "4f1c2e6a-8c1d-4a53-9d0e-2b7f6c1f9a10",
    }


def _deadline_text(policy: Policy) -> str:
    text = f"After this moment the work is of no use: the job fails with `deadline_exceeded`. {_INSTANT_TEXT}"
    if policy.deadline_default_s is not None:
        text += f" Without it: {span(policy.deadline_default_s)}."
    if policy.deadline_max_s is not None:
        text += f" At most {span(policy.deadline_max_s)}."
    return text


def _instant(name: str, description: str, seconds_max: float | None) -> Schema:
    # A header is text: as a number, JSON Schema would allow exponents, too.
    seconds: Schema = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}
    return {
        "name": name,
        "in": "header",
        "description": description,
        "schema": {"anyOf": [{"type": "string", "format": "date-time"}, seconds]},
        **({} if seconds_max is None else {"x-seconds-max": seconds_max}),
    }


def _priority(policy: Policy) -> Schema:
    default = min(max(limits.PRIORITY_DEFAULT, policy.priority_min), policy.priority_max)
    return {
        "name": "Job-Priority",
        "in": "header",
        "description": f"Lower starts first, among your own jobs. {default} where it is left out.",
        "schema": {
            "type": "integer",
            "minimum": policy.priority_min,
            "maximum": policy.priority_max,
            "default": default,
        },
    }
