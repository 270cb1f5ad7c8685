"""The fingerprint: equal for equal values, different for different ones."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from coatcheck.core.fingerprint import ALGORITHM, fingerprint
from coatcheck.core.jsontext import parse

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=15,
)


def _of(text: str) -> str:
    return fingerprint(parse(text.encode()))


def _reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed_keys(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [_reversed_keys(item) for item in value]
    return value


@given(_VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_spelling_makes_no_difference(value: Any, indent: int | None, ensure_ascii: bool) -> None:
    plain = json.dumps(value, separators=(",", ":"))
    other = json.dumps(_reversed_keys(value), indent=indent, ensure_ascii=ensure_ascii)
    assert _of(plain) == _of(other)


@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_one_and_one_point_nought_are_the_same(number: int) -> None:
    assert _of(f"[{number}]") == _of(f"[{number}.0]")


@given(st.integers(), st.integers())
def test_different_integers_differ(one: int, other: int) -> None:
    assume(one != other)
    assert fingerprint(one) != fingerprint(other)


@given(_VALUES, _VALUES)
def test_different_values_differ(one: Any, other: Any) -> None:
    assume(not _means_the_same(one, other))
    assert fingerprint(one) != fingerprint(other)


def _means_the_same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_means_the_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_means_the_same, one, other))
    return bool(one == other)


def test_large_integers_compare_exactly() -> None:
    assert _of("9007199254740993") != _of("9007199254740992")
    assert _of("9007199254740993") != _of("9007199254740992.0")


def test_look_alikes_differ() -> None:
    texts = ["0", "false", "null", '""', "[]", "{}", '"0"', '"null"', "[0]", "[[]]", "[null]", '{"a":null}', "0.1"]
    assert len({_of(text) for text in texts}) == len(texts)
    assert _of("[1,2]") != _of("[2,1]")
    assert _of('{"a":1,"b":2}') != _of('{"a":2,"b":1}')


def test_zero_has_no_sign() -> None:
    assert len({_of(text) for text in ("0", "-0", "0.0", "-0.0", "0e5")}) == 1


def test_stored_fingerprints_stay_what_they_are() -> None:
    assert ALGORITHM == "sha256-canonical-1"
    body = '{"b": [1, 2.0, 2.5, true, null], "a": "K\\u00f6ln \\u2602"}'
    assert _of(body) == "8d1b83258ca1d464278157834299083f5f1ae3e6efa80b3c84a06b8e514a9650"
