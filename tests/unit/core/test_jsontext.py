"""Strict JSON: one text, one meaning."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.jsontext import MalformedJson, parse
from coatcheck.core.limits import JSON_DEPTH_MAX

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


def _nested(depth: int, opening: str = "[", closing: str = "]", core: str = "") -> bytes:
    return (opening * depth + core + closing * depth).encode()


@given(_VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_what_json_writes_is_read_back(value: Any, ensure_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent).encode()
    assert parse(text) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        value = parse(text)
    except MalformedJson:
        return
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0),
        (b"-0", 0),
        (b" \t\r\n null \n", None),
        (b'""', ""),
        ('"☂ \U0001f4da"'.encode(), "☂ \U0001f4da"),
        (b'"\\ud83d\\udcda"', "\U0001f4da"),
        (b'"a\\/b\\n"', "a/b\n"),
        (b"1.5e3", 1500.0),
        (b"9007199254740993", 9007199254740993),
        (b"1e308", 1e308),
        (b"-1.7976931348623157e308", -1.7976931348623157e308),
        (b"1e-400", 0.0),
        (b'{"a":{"a":1},"b":{"a":2}}', {"a": {"a": 1}, "b": {"a": 2}}),
    ],
)
def test_these_are_json(text: bytes, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" \t\r\n",
        b"nul",
        b"{",
        b"[1,]",
        b'{"a":1,}',
        b"{'a':1}",
        b"{a:1}",
        b"1 2",
        b"[1] x",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"// comment\n1",
        b'"line\nbreak"',
        b'"tab\tinside"',
        b'"\\x41"',
        b'"\\u12"',
        b"\xef\xbb\xbf{}",
        b"\xff",
        b'"\xc3\x28"',
        b'"\xed\xa0\x80"',
        '{"a":1}'.encode("utf-16"),
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b'{"a":[NaN]}',
        b"1e309",
        b"-1e309",
        b"1" + b"0" * 309,
        b"-1" + b"0" * 309,
        b"9" * 5000,
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'[{"b":{"a":1,"a":2}}]',
        b'"\\u0000"',
        b'{"\\u0000":1}',
        b'["x",["a\\u0000b"]]',
        b'"\x00"',
        b'"\\ud800"',
        b'"\\udc00"',
        b'"\\udc00\\ud800"',
        b'{"\\ud800":1}',
        b'{"a":[{"b":"\\udfff"}]}',
    ],
    ids=lambda text: repr(text[:30]),
)
def test_these_are_refused_in_one_sentence(text: bytes) -> None:
    with pytest.raises(MalformedJson) as refusal:
        parse(text)
    assert str(refusal.value).endswith(".")
    assert "\n" not in str(refusal.value)


def test_the_largest_numbers_pass_and_the_next_do_not() -> None:
    largest = int(1.7976931348623157e308)
    assert parse(str(largest).encode()) == largest
    assert parse(str(-largest).encode()) == -largest
    with pytest.raises(MalformedJson):
        parse(str(largest * 2).encode())


@pytest.mark.parametrize(("opening", "closing", "core"), [("[", "]", ""), ('{"a":', "}", "1"), ('[{"a":', "}]", "1")])
def test_nesting_is_bounded(opening: str, closing: str, core: str) -> None:
    levels = opening.count("[") + opening.count("{")
    depth = JSON_DEPTH_MAX // levels
    parse(_nested(depth, opening, closing, core))
    with pytest.raises(MalformedJson, match="nested"):
        parse(_nested(depth + 1, opening, closing, core))


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_very_deep_nesting_is_refused_like_any_other(depth: int) -> None:
    for text in (_nested(depth), _nested(depth, '{"a":', "}", "1")):
        with pytest.raises(MalformedJson, match="nested"):
            parse(text)


def test_a_text_at_the_deepest_level_is_looked_at() -> None:
    for text in (b'"\\u0000"', b'"\\ud800"'):
        with pytest.raises(MalformedJson):
            parse(_nested(JSON_DEPTH_MAX, core=text.decode()))
