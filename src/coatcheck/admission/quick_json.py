"""The quick way to read and fingerprint JSON: what `core` defines, by a faster library where the spelling allows it.

Whatever that might see differently is left to the definition. Tests hold both against each other. The library is
msgspec: where memory runs out in the middle of a body, orjson ends the process and msgspec raises MemoryError.
"""

import hashlib
import re
from typing import Final

import msgspec

from coatcheck.core import limits
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.jsontext import Json, check_depth, parse

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
# Not JSON or not UTF-8, an integer of more than 64 bits, too deep.
_LEFT_TO_THE_DEFINITION = (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError, RecursionError)
_WHITE_SPACE: Final = b" \t\r\n"
# A float in a compact text, or a string that looks like one: no two writers spell floats alike.
_MAYBE_FLOAT = re.compile(rb"[:,\[]-?[0-9]+[.e]")
# An integer that may be outside the range of a float, which the library reads all the same.
_DIGITS_OF_A_HUGE_INTEGER: Final = 309
_MAYBE_HUGE = re.compile(rb"(?:^|[^0-9])[0-9]{%d}" % _DIGITS_OF_A_HUGE_INTEGER)


def read_json(text: bytes) -> Json:
    """What `core.jsontext.parse` makes of a text.

    Raises:
        MalformedJson: as that does.
    """
    try:
        value: Json = _decode(text)
        is_plain = _is_plainly_spelled(text, value)
    except _LEFT_TO_THE_DEFINITION:
        is_plain = False
    if not is_plain:
        return parse(text)
    if text.count(b"{") + text.count(b"[") > limits.JSON_DEPTH_MAX:
        check_depth(value)
    return value


def fingerprint_of(value: Json) -> str:
    """What `core.fingerprint.fingerprint` makes of a value."""
    try:
        text = _encode_sorted(value)
    except _LEFT_TO_THE_DEFINITION:
        return fingerprint(value)
    if isinstance(value, float) or _MAYBE_FLOAT.search(text):
        return fingerprint(value)
    return hashlib.sha256(text).hexdigest()


def _is_plainly_spelled(text: bytes, value: Json) -> bool:
    """Whether the text is `value` and nothing else, found out by writing the value again.

    Without a backslash, taking white space out of a text (even out of its strings) leaves its tokens apart. So equal
    texts have the same tokens: no key was dropped for a later one, and no number was changed to fit.
    """
    if b"\\" in text or (len(text) >= _DIGITS_OF_A_HUGE_INTEGER and _MAYBE_HUGE.search(text)):
        return False
    written = _encode(value)
    return text == written or text.translate(None, _WHITE_SPACE) == written.translate(None, _WHITE_SPACE)
