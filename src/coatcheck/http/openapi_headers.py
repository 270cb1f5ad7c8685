"""Every header of the contract's answers, as OpenAPI describes it."""

from collections.abc import Mapping
from typing import Final

from coatcheck.core import limits
from coatcheck.http.openapi_access import Doors
from coatcheck.http.openapi_schemas import Schema

_ANSWER_HEADERS: Final[Mapping[str, Schema]] = {
    "Location": {
        "description": "The job's own URL: read it to learn how the work is going.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Retry-After": {
        "description": "Seconds to wait before asking again, computed from what the queue is really doing.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 3600},
    },
    "Job-Estimated-Start": {
        "description": (
            "When a waiting job is likely to start, an RFC 3339 instant in UTC. Each read refines it; absent while too "
            "little is known of the queue."
        ),
        "schema": {"type": "string", "format": "date-time"},
    },
    "ETag": {
        "description": "Names this version of the answer. Send it back as `If-None-Match` to be told only of changes.",
        "schema": {"type": "string", "pattern": '^(W/)?"[^"]*"$'},
    },
    "Sunset": {
        "description": "When the finished job will be gone (RFC 8594), as an HTTP date.",
        "schema": {"type": "string"},
    },
    "Preference-Applied": {
        "description": "The preferences of `Prefer` that were honoured (RFC 7240).",
        "schema": {"type": "string"},
    },
    "Idempotent-Replayed": {
        "description": "`true` where the key had been used before: this is the job of the first submission.",
        "schema": {"type": "string", "const": "true"},
    },
    "X-Correlation-ID": {
        "description": "The request's correlation id, or a new one where none (or no valid one) was sent.",
        "required": True,
        "schema": {"type": "string", "pattern": f"^[!-~]{{1,{limits.CORRELATION_ID_CHARS_MAX}}}$"},
    },
    "Cache-Control": {
        "description": "Who may keep the answer. Jobs are private and must be asked for again.",
        "schema": {"type": "string"},
    },
    "Vary": {"description": "The request headers that the answer depends on.", "schema": {"type": "string"}},
    "Link": {
        "description": 'The next page as `rel="next"` (RFC 8288); absent on the last one.',
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": (
            "The tenant's own rates where it has any: `q` requests within `w` seconds, by name "
            "(draft-ietf-httpapi-ratelimit-headers)."
        ),
        "schema": {"type": "string"},
        "example": '"submit";q=50;w=1',
    },
    "RateLimit": {
        "description": "What is left of them: `r` requests at once, and one more after `t` seconds.",
        "schema": {"type": "string"},
        "example": '"submit";r=49;t=1',
    },
    "Allow": {"description": "The methods this path knows.", "required": True, "schema": {"type": "string"}},
    "Content-Disposition": {
        "description": "The name to save the result under, where its file has one (RFC 6266).",
        "schema": {"type": "string"},
    },
}
_GUARDED: Final[Mapping[str, Schema]] = {
    "WWW-Authenticate": {"description": "How to authenticate (RFC 6750).", "schema": {"type": "string"}},
}
_VIEWED: Final[Mapping[str, Schema]] = {
    "Set-Cookie": {
        "description": "The cookie of the view session, good for the job's path and as long as the token.",
        "schema": {"type": "string"},
    },
}


_OF_OPERATORS: Final = ("X-Correlation-ID", "Cache-Control", "Retry-After", "Allow")


def operator_headers() -> dict[str, Schema]:
    """The headers of the operators' API by name."""
    location = {**_ANSWER_HEADERS["Location"], "description": "The URL of what was made."}
    return {"Location": location, **{name: _ANSWER_HEADERS[name] for name in _OF_OPERATORS}, **_GUARDED}


def answer_headers(doors: Doors) -> dict[str, Schema]:
    """The headers of a service's answers by name."""
    guarded = _GUARDED if doors.schemes else {}
    return {**_ANSWER_HEADERS, **guarded, **(_VIEWED if doors.has_views else {})}
