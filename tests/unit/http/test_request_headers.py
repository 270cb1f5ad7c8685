"""The parsers of request headers, each by its RFC."""

import pytest

from coatcheck.admission.correlation import correlation_id_of, traceparent_of
from coatcheck.admission.headers import read_options
from coatcheck.admission.media_type import require_json
from coatcheck.core.problems import Refused
from coatcheck.http.conditional import read_condition
from coatcheck.http.negotiation import JobForm, choose_job_form, require_json_accepted
from coatcheck.http.prefer import Preferences, preference_applied, read_preferences

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def key_of(*values: bytes) -> str | None:
    return read_options({b"idempotency-key": values}, "c", 0).idempotency_key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b"abc", "abc"),
        (b'"abc"', "abc"),
        (b'  "abc"\t', "abc"),
        (rb'"a\"b\\c"', 'a"b\\c'),
        (b'"abc";v=1; flag', "abc"),
        (b"a,b", "a,b"),
        (b'a"b', 'a"b'),
    ],
)
def test_key_is_quoted_or_bare(value: bytes, key: str) -> None:
    assert key_of(value) == key


@pytest.mark.parametrize("value", [b'"abc', b'"', b'"a"b', rb'"a\b"', b'"abc", "def"', b'"\xe9"'])
def test_key_is_no_structured_string(value: bytes) -> None:
    with pytest.raises(Refused) as refused:
        key_of(value)
    assert refused.value.code == "invalid-header"
    assert "Idempotency-Key" in refused.value.detail


def test_two_keys_are_refused_even_when_equal() -> None:
    with pytest.raises(Refused):
        key_of(b"abc", b"abc")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Preferences()),
        ([b"wait=10"], Preferences(10)),
        ([b"Wait = 10"], Preferences(10)),
        ([b'wait="10"'], Preferences(10)),
        ([b"respond-async, wait=5"], Preferences(5, True)),
        ([b"respond-async", b"wait=5"], Preferences(5, True)),
        ([b"RESPOND-ASYNC"], Preferences(None, True)),
        ([b"respond-async;foo=bar;;, wait=3; x"], Preferences(3, True)),
        ([b"wait=7, wait=9"], Preferences(7)),
        ([b"wait=100"], Preferences(25)),
        ([b"wait=" + b"9" * 400], Preferences(25)),
        ([b"wait=0"], Preferences(0)),
        ([b"wait"], Preferences()),
        ([b"wait="], Preferences()),
        ([b"wait=-1"], Preferences()),
        ([b"wait=1.5"], Preferences()),
        ([b"wait=\xb2"], Preferences()),
        ([b"wait==5, respond-async"], Preferences(None, True)),
        ([b",, ,wait=4,"], Preferences(4)),
        ([b'foo="a, wait=9"; p="x,y", wait=2'], Preferences(2)),
        ([b'foo="unclosed, wait=2'], Preferences(2)),
        ([b"return=minimal, handling=lenient"], Preferences()),
        ([b"wait=1," * 400], Preferences()),
    ],
)
def test_preferences(values: list[bytes], expected: Preferences) -> None:
    assert read_preferences(values, 25.0) == expected


def test_what_was_honoured_is_told() -> None:
    assert preference_applied(25.0, is_async=True) == (b"preference-applied", b"respond-async, wait=25")
    assert preference_applied(0.0, is_async=False) == (b"preference-applied", b"wait=0")
    assert preference_applied(None, is_async=False) is None


@pytest.mark.parametrize(
    "value",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b'application/json ;charset="UTF-8"',
        b"application/json;",
        b"application/problem+json",
        b"application/vnd.bookshop.report+json; version=1",
    ],
)
def test_is_json(value: bytes) -> None:
    require_json([value])


@pytest.mark.parametrize(
    "values",
    [
        [],
        [b""],
        [b"text/plain"],
        [b"application/jsonp"],
        [b"application/xml"],
        [b"text/json"],
        [b"application/+json"],
        [b"application/json; charset=latin-1"],
        [b"application/json; charset=utf-8; charset=utf-16"],
        [b"application/json; nonsense"],
        [b"application/json, application/json"],
        [b"application/json", b"application/json"],
        [b"application/json" + b" " * 2000],
    ],
)
def test_is_not_json(values: list[bytes]) -> None:
    with pytest.raises(Refused) as refused:
        require_json(values)
    assert refused.value.status == 415


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, JobForm.JSON),
        (b"", JobForm.JSON),
        (b"*/*", JobForm.JSON),
        (b"application/*", JobForm.JSON),
        (b"text/event-stream", JobForm.STREAM),
        (b"TEXT/Event-Stream", JobForm.STREAM),
        (b"text/event-stream, application/json", JobForm.JSON),
        (b"text/event-stream, application/json;q=0.9", JobForm.STREAM),
        (b"text/event-stream;q=0.5, application/json;q=0.9", JobForm.JSON),
        (b"text/event-stream, */*", JobForm.STREAM),
        (b"text/*, application/json", JobForm.JSON),
        (b"text/*;q=0.9, application/json;q=0.1", JobForm.STREAM),
        (b"text/event-stream;q=0, */*;q=0.1", JobForm.JSON),
        (b"application/json;q=0, */*", JobForm.STREAM),
        (b"garbage", JobForm.JSON),
        (b"application/json;q=2, text/event-stream;q=0.1", JobForm.STREAM),
    ],
)
def test_form_of_a_job(accept: bytes | None, form: JobForm) -> None:
    assert choose_job_form({} if accept is None else {b"accept": [accept]}) is form


@pytest.mark.parametrize("accept", [b"text/html", b"application/json;q=0", b"*/*;q=0", b"application/problem+json"])
def test_not_acceptable(accept: bytes) -> None:
    with pytest.raises(Refused) as refused:
        require_json_accepted({b"accept": [accept]})
    assert refused.value.status == 406


@pytest.mark.parametrize(
    ("values", "is_match"),
    [
        ([b'"v1-r1"'], True),
        ([b'W/"v1-r1"'], True),
        ([b'"x", W/"v1-r1"'], True),
        ([b'"x"', b'"v1-r1"'], True),
        ([b"*"], True),
        ([b'"v1-r1-x"'], False),
        ([b"v1-r1"], False),
        ([b""], False),
        ([], False),
    ],
)
def test_condition(values: list[bytes], is_match: bool) -> None:
    assert read_condition(values).matches('"v1-r1"') is is_match


@pytest.mark.parametrize("value", [b"a", b"!" * 128, b"<script>"])
def test_correlation_id_is_kept(value: bytes) -> None:
    assert correlation_id_of([value]) == value.decode()


@pytest.mark.parametrize("values", [[], [b""], [b"a b"], [b"a" * 129], [b"\xc3\xa9"], [b"a\x00"], [b"a", b"a"]])
def test_correlation_id_is_replaced(values: list[bytes]) -> None:
    made = correlation_id_of(values)
    assert len(made) == 32
    assert made.encode() not in values


def test_traceparent() -> None:
    assert traceparent_of([TRACE]) == TRACE.decode()
    assert traceparent_of([b"cc" + TRACE[2:] + b"-what-comes-later"]) == TRACE.decode()


@pytest.mark.parametrize(
    "values",
    [
        [],
        [TRACE, TRACE],
        [TRACE.upper()],
        [b"ff" + TRACE[2:]],
        [TRACE + b"-more"],
        [b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01"],
        [b"00-4bf92f3577b34da6a3ce929d0e0e4736-" + b"0" * 16 + b"-01"],
        [b"nonsense"],
    ],
)
def test_traceparent_is_ignored(values: list[bytes]) -> None:
    assert traceparent_of(values) is None
