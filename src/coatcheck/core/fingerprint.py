"""The fingerprint of a submission: equal for equal JSON values, whatever their spelling.

Key order and white space do not matter, 1 and 1.0 are the same number, integers compare exactly. The algorithm's
id is stored beside the digest, so that a later canonical form never meets an old digest.
"""

import hashlib
import json

from coatcheck.core.jsontext import Json

ALGORITHM = "sha256-canonical-1"


def fingerprint(value: Json) -> str:
    """The hex digest of a parsed body's canonical form."""
    canonical = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _canonical(value: Json) -> Json:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return value
