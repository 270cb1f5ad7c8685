"""The quick way to read and fingerprint JSON: what `core` defines, by a faster library where the spelling allows it.

Whatever that might see differently is left to the definition. Tests hold both against each other.
"""

import hashlib
import re
from typing import Final

import orjson

from coatcheck.core import limits
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.jsontext import Json, check_depth, parse

_WHITE_SPACE: Final = b" \t\r\n"
# A float in a compact text, or a string that looks like one: no two writers spell floats alike.
_MAYBE_FLOAT = re.compile(rb"[:,\[]-?[0-9]+[.e]")


def read_json(text: bytes) -> Json:
    """What `core.jsontext.parse` makes of a text.

    Raises:
        MalformedJson: as that does.
    """
    try:
        value: Json = orjson.loads(text)
        is_plain = _is_plainly_spelled(text, value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        is_plain = False
    if not is_plain:
        return parse(text)
    if text.count(b"{") + text.count(b"[") > limits.JSON_DEPTH_MAX:
        check_depth(value)
    return value


def fingerprint_of(value: Json) -> str:
    """What `core.fingerprint.fingerprint` makes of a value."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # An integer of more than 64 bits, most likely.
        return fingerprint(value)
    if isinstance(value, float) or _MAYBE_FLOAT.search(text):
        return fingerprint(value)
    return hashlib.sha256(text).hexdigest()


def _is_plainly_spelled(text: bytes, value: Json) -> bool:
    """Whether the text is `value` and nothing else, found out by writing the value again.

    Without a backslash, taking white space out of a text (even out of its strings) leaves its tokens apart. So equal
    texts have the same tokens: no key was dropped for a later one, and no number was changed to fit.
    """
    if b"\\" in text:
        return False
    written = orjson.dumps(value)
    return text == written or text.translate(None, _WHITE_SPACE) == written.translate(None, _WHITE_SPACE)
