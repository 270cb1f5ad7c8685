"""Names that tie one request's answers and log lines together: the correlation id and the trace context."""

import random
import re
from collections.abc import Sequence

from coatcheck.core import limits

_CORRELATION_ID = re.compile(f"[!-~]{{1,{limits.CORRELATION_ID_CHARS_MAX}}}")
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def correlation_id_of(values: Sequence[bytes]) -> str:
    """The id a request brought, or a new one where it brought none, several, or one of another form."""
    if len(values) == 1:
        correlation_id = values[0].decode("latin-1")
        if is_correlation_id(correlation_id):
            return correlation_id
    return new_correlation_id()


def is_correlation_id(text: str) -> bool:
    return _CORRELATION_ID.fullmatch(text) is not None


def new_correlation_id() -> str:
    """128 random bits in hexadecimal: unlike any other, and no secret."""
    return f"{random.getrandbits(128):032x}"


def traceparent_of(values: Sequence[bytes]) -> str | None:
    """The trace context (W3C Trace Context, in the form of version 00), or None where it is not a valid one."""
    if len(values) != 1:
        return None
    match = _TRACEPARENT.fullmatch(values[0].decode("latin-1"))
    if match is None:
        return None
    version, trace_id, parent_id, flags, rest = match.groups()
    is_invalid = version == "ff" or (version == "00" and rest is not None)
    if is_invalid or not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return f"00-{trace_id}-{parent_id}-{flags}"
