"""Whether a body is declared as JSON: application/json or application/*+json, in UTF-8 (RFC 9110, 8.3; RFC 6839)."""

import re
from collections.abc import Sequence
from functools import lru_cache

from coatcheck.admission.grammar import PARAMETERS, QUOTED, TCHARS
from coatcheck.core import limits
from coatcheck.core.problems import Refused

_JSON = re.compile(rf"application/(?:json|{TCHARS}\+json)(?P<parameters>{PARAMETERS})[ \t]*", re.IGNORECASE)
_CHARSET = re.compile(rf";[ \t]*charset=({TCHARS}|{QUOTED})", re.IGNORECASE)


def require_json(content_types: Sequence[bytes]) -> None:
    """Return where the values of Content-Type are one value that means JSON.

    Raises:
        Refused: `unsupported-media-type`.
    """
    if len(content_types) == 1:
        value = content_types[0]
        if value == b"application/json" or (len(value) <= limits.HEADER_VALUE_BYTES_MAX and _is_json(value)):
            return
        detail = "The Content-Type must be application/json or application/*+json, in UTF-8."
        raise Refused("unsupported-media-type", detail)
    what = "is missing" if not content_types else "stands more than once"
    raise Refused("unsupported-media-type", f"The Content-Type {what}; send application/json.")


@lru_cache(maxsize=256)
def _is_json(value: bytes) -> bool:
    match = _JSON.fullmatch(value.decode("latin-1").strip(" \t"))
    if match is None:
        return False
    charsets = _CHARSET.findall(match["parameters"])
    return all(charset.strip('"').lower() == "utf-8" for charset in charsets)
