"""The quick way with JSON and the definition agree on everything."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.admission.quick_json import fingerprint_of, read_json
from coatcheck.core.fingerprint import fingerprint
from coatcheck.core.jsontext import MalformedJson, parse
from coatcheck.core.limits import JSON_DEPTH_MAX

_TOKENS = st.one_of(
    st.sampled_from(rb'{ } [ ] : , " \ "a" "b" "\u0061" "\u0000" "\ud800" true false null NaN'.split()),
    st.sampled_from(b"0 -0 1 -1 1.0 1.5 1e5 1e16 -0.0 1E400 1e-400 0.1 100000000000000000000".split()),
    st.sampled_from(b"18446744073709551615 18446744073709551616 -9223372036854775809 9007199254740993".split()),
    st.sampled_from(
        [b"9" * 400, b'"a b"', b" ", b"\n", b"\t", b"\x00", b"\x7f", b"\xff", "é".encode(), b"\xe2\x80\xa8"]
    ),
)
_KEYS = st.sampled_from(['"a"', '"b"', '"a b"', '"ab"', '"é"', '"\\u0061"', '"1.5"'])
_SCALARS = st.one_of(
    st.sampled_from(
        ["0", "-0", "1.0", "1.5", "2e3", "-0.0", "1e400", "1" * 21, "18446744073709551616", "null", "true"]
    ),
    st.sampled_from(['""', '" "', '"a b"', '"\\n"', '"\\ud800"', '"\\u0000"', '"x: 1.5e3"']),
)
_SPACES = st.sampled_from(["", "", " ", "\n\t "])


@st.composite
def _spelled(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """A list or an object in some spelling, perhaps with a key that stands in it twice."""
    items = draw(st.lists(inner, max_size=4))
    if draw(st.booleans()):
        items = [f"{draw(_KEYS)}{draw(_SPACES)}:{draw(_SPACES)}{item}" for item in items]
        return "{" + f"{draw(_SPACES)},{draw(_SPACES)}".join(items) + "}"
    return "[" + f"{draw(_SPACES)},".join(items) + draw(_SPACES) + "]"


_DOCUMENTS = st.recursive(_SCALARS, _spelled, max_leaves=12).map(str.encode)


@given(st.one_of(_DOCUMENTS, st.lists(_TOKENS, max_size=12).map(b"".join), st.binary(max_size=12)))
def test_every_text_is_read_or_refused_alike(text: bytes) -> None:
    assert _outcome(read_json, text) == _outcome(parse, text)


@pytest.mark.parametrize(
    "text",
    [b"9" * 308, b"9" * 309, b"1" * 309, b'{"a": -' + b"9" * 310 + b"}", b"[1." + b"9" * 400 + b"]", b"9" * 5_000],
)
def test_huge_numbers_are_read_or_refused_alike(text: bytes) -> None:
    assert _outcome(read_json, text) == _outcome(parse, text)


@pytest.mark.parametrize(
    "text", [b"", b" ", b'{"a":1,"a":1}', b'{"a b":1,"ab":2, "a b":1}', b'{"a": 1, "b": [1.5, "x"]}']
)
def test_these_are_read_or_refused_alike(text: bytes) -> None:
    assert _outcome(read_json, text) == _outcome(parse, text)


@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1, 200, 300, 1_100, 100_000])
def test_depth_is_bounded_alike(depth: int) -> None:
    for text in (b"[" * depth + b"]" * depth, b"[" + b"[]," * depth + b"[]]"):
        assert _outcome(read_json, text) == _outcome(parse, text)


def _outcome(reader: Callable[[bytes], Any], text: bytes) -> str:
    """What became of a text, in words that tell 1 from 1.0 and from true, and 0.0 from -0.0."""
    try:
        return repr(reader(text))
    except MalformedJson as error:
        return f"refused: {error}"


_NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1e16, 1e22, 1e-7, 5e-324, 1.5, 2.0**63, 1e300, 2**63, 2**64, -(2**63) - 1, 2**64 - 1]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
_STRINGS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["x:1.5", ",-2e3", "é", "\x7f\x1f", "\U0001f4da", "\uffff"]),
)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_STRINGS, inner, max_size=6),
    max_leaves=15,
)


@given(_VALUES)
def test_every_value_has_one_fingerprint(value: Any) -> None:
    assert fingerprint_of(value) == fingerprint(value)
