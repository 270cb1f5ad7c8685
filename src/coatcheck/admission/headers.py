"""The request headers of a submission, read strictly: what is malformed or stands twice is refused by name.

Correlation id and trace context alone are never a reason to refuse: other people's proxies add them.
"""

import re
from collections.abc import Mapping, Sequence

from coatcheck.admission.correlation import traceparent_of
from coatcheck.admission.instants import parse_moment
from coatcheck.admission.options import SubmissionOptions
from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.problems import Refused

# A Structured Field String with any parameters (RFC 9651), which stand for nothing here.
_QUOTED_KEY = re.compile(
    r'"((?:[ !#-\[\]-~]|\\["\\])*)"'
    r"(?: *; *[a-z*][a-z0-9_.*-]*(?:=(?:\"(?:[ !#-\[\]-~]|\\[\"\\])*\"|[A-Za-z0-9!#$%&'*+./:?@^_`|~-]+))?)*"
)
_ESCAPE = re.compile(r'\\(["\\])')
_PRIORITY = re.compile(r"[0-9]")
_NAMES = {
    b"idempotency-key": "Idempotency-Key",
    b"job-start-after": "Job-Start-After",
    b"job-deadline": "Job-Deadline",
    b"job-priority": "Job-Priority",
}

HeaderValues = Mapping[bytes, Sequence[bytes]]
"""The values of each header by its lower-case name, in the order they came."""


def read_options(headers: HeaderValues, correlation_id: str, now: InstantMs) -> SubmissionOptions:
    """The options a request's headers ask for.

    Raises:
        Refused: `invalid-header`, naming the header.
    """
    return SubmissionOptions(
        correlation_id=correlation_id,
        idempotency_key=_idempotency_key(headers) if b"idempotency-key" in headers else None,
        start_after=_moment(headers, b"job-start-after", now) if b"job-start-after" in headers else None,
        deadline=_moment(headers, b"job-deadline", now) if b"job-deadline" in headers else None,
        priority=_priority(headers) if b"job-priority" in headers else None,
        traceparent=traceparent_of(headers[b"traceparent"]) if b"traceparent" in headers else None,
    )


def _single(headers: HeaderValues, field: bytes) -> str | None:
    values = headers.get(field)
    if not values:
        return None
    if len(values) > 1:
        raise Refused("invalid-header", f"{_NAMES[field]} stands more than once; send it once.")
    if len(values[0]) > limits.HEADER_VALUE_BYTES_MAX:
        raise Refused("invalid-header", f"{_NAMES[field]} is longer than {limits.HEADER_VALUE_BYTES_MAX} bytes.")
    return values[0].decode("latin-1").strip(" \t")


def _idempotency_key(headers: HeaderValues) -> str | None:
    text = _single(headers, b"idempotency-key")
    if text is None or not text.startswith('"'):
        return text
    match = _QUOTED_KEY.fullmatch(text)
    if match is None:
        raise Refused("invalid-header", "Idempotency-Key begins with a quote and is no Structured Field string.")
    return _ESCAPE.sub(r"\1", match[1])


def _moment(headers: HeaderValues, field: bytes, now: InstantMs) -> InstantMs | None:
    text = _single(headers, field)
    if text is None:
        return None
    moment = parse_moment(text, now)
    if moment is None:
        form = "an RFC 3339 instant with its offset, such as 2030-01-31T12:00:00Z, or seconds from now"
        raise Refused("invalid-header", f"{_NAMES[field]} must be {form}.")
    return moment


def _priority(headers: HeaderValues) -> int | None:
    text = _single(headers, b"job-priority")
    if text is None:
        return None
    if not _PRIORITY.fullmatch(text):
        raise Refused("invalid-header", f"Job-Priority must be a digit from 0 to {limits.PRIORITY_MAX}.")
    return int(text)
