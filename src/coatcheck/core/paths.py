"""Where an operation may live: paths that cannot meet each other or the service's own."""

import re

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.~-]*")
_RESERVED_FIRST = frozenset({"admin", "console", "docs", "livez", "metrics", "openapi.json", "problems", "readyz"})
_RESERVED = frozenset({"/v1/jobs", "/v1/uploads", "/v1/webhook-endpoints", "/v1/events"})


def path_fault(path: str, taken: list[str]) -> str | None:
    """Why the path cannot be an operation's collection, or None where it can. `taken`: the paths declared before."""
    segments = path.split("/")[1:]
    if not path.startswith("/") or not segments or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        return f"path {path!r} must be absolute, of letters, digits, '.', '_', '~' and '-', without a slash at its end"
    if segments[0] in _RESERVED_FIRST or any(_overlap(path, reserved) for reserved in _RESERVED):
        return f"path {path!r} is reserved for the service itself"
    for other in taken:
        if _overlap(path, other):
            return f"path {path!r} overlaps with {other!r} of another operation"
    return None


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")
