"""What a client prefers (RFC 7240), read leniently: what is malformed or unknown is as if it were not there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.admission.grammar import QUOTED, TCHARS, elements
from coatcheck.core import limits

_WORD = rf"(?:{TCHARS}|{QUOTED})"
_PREFERENCE = re.compile(
    rf"[ \t]*(?P<name>{TCHARS})(?:[ \t]*=[ \t]*(?P<value>{_WORD}))?"
    rf"(?:[ \t]*;(?:[ \t]*{TCHARS}(?:[ \t]*=[ \t]*{_WORD})?)?)*[ \t]*"
)
_DELAY = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Preferences:
    """`wait_s`: how long the answer may be held, in seconds, already capped; None: not asked for."""

    wait_s: float | None = None
    respond_async: bool = False


NO_PREFERENCES = Preferences()


def read_preferences(values: Sequence[bytes], wait_max_s: float) -> Preferences:
    """Read all Prefer headers as one list. Of a preference that is repeated only the first counts."""
    text = b",".join(values).decode("latin-1")
    if not text or len(text) > limits.HEADER_VALUE_BYTES_MAX:
        return NO_PREFERENCES
    found: dict[str, str | None] = {}
    for element in elements(text):
        match = _PREFERENCE.fullmatch(element)
        if match is not None:
            found.setdefault(match["name"].lower(), match["value"])
    return Preferences(_wait_s(found.get("wait"), wait_max_s), "respond-async" in found)


def preference_applied(wait_s: float | None, is_async: bool) -> tuple[bytes, bytes] | None:
    """The Preference-Applied header for what was honoured; None: nothing was."""
    applied = [b"respond-async"] if is_async else []
    if wait_s is not None:
        applied.append(b"wait=%d" % int(wait_s))
    return (b"preference-applied", b", ".join(applied)) if applied else None


def _wait_s(value: str | None, wait_max_s: float) -> float | None:
    digits = "" if value is None else value.strip('"')
    return min(float(digits), wait_max_s) if _DELAY.fullmatch(digits) else None
