"""Strict JSON: what every store can keep and every client means the same by.

RFC 8259 leaves duplicate keys, huge numbers, lone surrogates and deep nesting to the parser; here they are errors,
so that one text has one meaning on every engine.
"""

import json
import math
from typing import NoReturn, TypeAlias

from coatcheck.core import limits

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_INTEGER_DIGITS_MAX = 309


class MalformedJson(ValueError):
    """The text is not JSON this service accepts; the message says why, in words for the client."""


def parse(text: bytes) -> Json:
    """Parse UTF-8 JSON text.

    Raises:
        MalformedJson: not UTF-8, not JSON, or one of the forms that have no single meaning.
    """
    if not text.strip(b" \t\r\n"):
        raise MalformedJson("The body is empty; send a JSON document.")
    try:
        value: Json = _DECODER.decode(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8 (byte {error.start}).") from None
    except RecursionError:
        raise MalformedJson(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg} at line {error.lineno}, column {error.colno}.") from None
    _check_depth_and_text(value, has_escapes=b"\\u" in text)
    return value


def check_depth(value: Json) -> None:
    """Raises MalformedJson where a value is nested too deep."""
    _check_depth_and_text(value, has_escapes=False)


_TOO_DEEP = f"The JSON is nested more than {limits.JSON_DEPTH_MAX} levels deep."


def _reject_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedJson("An object has the same key twice.")
    return result


def _reject_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not a JSON number.")


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise MalformedJson("A number is outside the range of a 64-bit float.")
    return number


def _bounded_int(text: str) -> int:
    if len(text) > _INTEGER_DIGITS_MAX + 1 or math.isinf(float(text)):
        raise MalformedJson("A number is outside the range of a 64-bit float.")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_reject_duplicates,
    parse_constant=_reject_constant,
    parse_float=_finite_float,
    parse_int=_bounded_int,
)


def _check_depth_and_text(value: Json, has_escapes: bool) -> None:
    """Walk level by level. Texts need a look only where the source had escapes: nothing else can hide there."""
    level: list[Json] = [value]
    for _ in range(limits.JSON_DEPTH_MAX):
        if has_escapes:
            _check_texts(level)
        level = _children(level)
        if not level:
            return
    if any(isinstance(child, (dict, list)) for child in level):
        raise MalformedJson(_TOO_DEEP)
    if has_escapes:
        _check_texts(level)


def _children(level: list[Json]) -> list[Json]:
    below: list[Json] = []
    for value in level:
        if isinstance(value, dict):
            below.extend(value.values())
        elif isinstance(value, list):
            below.extend(value)
    return below


def _check_texts(level: list[Json]) -> None:
    for value in level:
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, dict):
            for key in value:
                _check_text(key)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise MalformedJson("A text holds U+0000, which cannot be stored.")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise MalformedJson("A text holds half of a surrogate pair.")
