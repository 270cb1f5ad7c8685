"""Admission: what may enter, and where exactly a body is wrong."""

from typing import Annotated, Any, Literal

import pytest
from http_site import make_app
from pydantic import BaseModel, Field

from coatcheck.admission.admit import admit, require_time_left
from coatcheck.admission.options import SubmissionOptions
from coatcheck.app import App
from coatcheck.core.problems import Refused

NOW = 1_767_600_000_000
APP = make_app()
REPORTS, STRICT = APP.operations["reports"], APP.operations["strict"]
BODY = b'{"branch": "leeds"}'


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Shop(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []
    either: int | list[int] = 0
    tables: dict[str, Cat] = {}
    named: Annotated[str, Field(alias="a/b~c")] = ""


SHOP = App("pets")


@SHOP.operation("shop")
async def shop(request: Shop, job: Any) -> None: ...


def refusal(operation: Any, body: bytes = BODY, **options: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        admit(operation, body, SubmissionOptions(correlation_id="c", **options), NOW)
    return refused.value


def pointers(body: bytes) -> list[str]:
    return [error.pointer for error in refusal(SHOP.operations["shop"], body).errors]


def test_defaults() -> None:
    admitted = admit(REPORTS, BODY, SubmissionOptions("c"), NOW)
    assert (admitted.start_at, admitted.deadline_at, admitted.priority, admitted.key) == (NOW, None, 5, None)
    assert admitted.payload == BODY


def test_equal_bodies_have_equal_fingerprints() -> None:
    options = SubmissionOptions("c", idempotency_key="k")
    one = admit(STRICT, b'{"a":1,"b":2.0}', options, NOW).key
    other = admit(STRICT, b' { "b" : 2 , "a" : 1.0 } ', options, NOW).key
    assert one == other
    assert one is not None
    assert one.key == "k"


@pytest.mark.parametrize("key", ["", "a" * 256, "a b", "é", "a\nb"])
def test_keys_that_are_none(key: str) -> None:
    assert refusal(REPORTS, idempotency_key=key).code == "invalid-header"


def test_required_key() -> None:
    assert refusal(STRICT).code == "idempotency-key-required"


def test_start_and_deadline_within_bounds() -> None:
    options = SubmissionOptions("c", idempotency_key="k", start_after=NOW + 1000, deadline=NOW + 3_600_000)
    admitted = admit(STRICT, b"{}", options, NOW)
    assert (admitted.start_at, admitted.deadline_at) == (NOW + 1000, NOW + 3_600_000)


def test_a_start_in_the_past_is_now_and_a_deadline_has_its_default() -> None:
    admitted = admit(STRICT, b"{}", SubmissionOptions("c", idempotency_key="k", start_after=-1), NOW)
    assert (admitted.start_at, admitted.deadline_at) == (NOW, NOW + 600_000)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"deadline": NOW + 1000, "start_after": NOW + 1000}, "Job-Deadline"),
        ({"deadline": NOW + 3_600_001}, "Job-Deadline"),
        ({"start_after": NOW + 600_000}, "Job-Start-After"),
        ({"start_after": NOW + 400 * 86_400_000}, "Job-Start-After"),
        ({"priority": 2}, "Job-Priority"),
        ({"priority": 7}, "Job-Priority"),
        ({"correlation_id": "a b"}, "X-Correlation-ID"),
    ],
)
def test_options_out_of_bounds(options: dict[str, Any], name: str) -> None:
    with pytest.raises(Refused) as refused:
        admit(STRICT, b"{}", SubmissionOptions(**{"correlation_id": "c", "idempotency_key": "k", **options}), NOW)
    assert refused.value.code == "invalid-header"
    assert name in refused.value.detail


@pytest.mark.parametrize("left_ms", [-1, 0, 1])
def test_a_deadline_that_has_passed_is_told_apart(left_ms: int) -> None:
    options = SubmissionOptions("c", idempotency_key="k", deadline=NOW + left_ms, start_after=NOW - 1000)
    admitted = admit(STRICT, b"{}", options, NOW)
    if left_ms > 0:
        require_time_left(admitted)
    else:
        with pytest.raises(Refused, match="Job-Deadline is not in the future"):
            require_time_left(admitted)


@pytest.mark.parametrize(
    "body",
    [b"", b"  ", b"{", b"\xff", b"\xef\xbb\xbf{}", b"NaN", b"[1e999]", b'{"a":1,"a":2}', rb'"\ud800"', rb'"\u0000"'],
)
def test_malformed_json(body: bytes) -> None:
    assert refusal(REPORTS, body).code == "malformed-json"


def test_size() -> None:
    assert refusal(REPORTS, b" " * 2001).code == "payload-too-large"


def test_pointers_are_places_in_the_body() -> None:
    assert pointers(b'{"pets": [{"kind": "cat", "lives": "x"}]}') == ["/pets/0/lives"]
    assert pointers(b'{"pets": [{"kind": "cat"}]}') == ["/pets/0/lives"]
    assert pointers(b'{"pets": [{"kind": "dog", "tricks": [1, "sit", 2]}]}') == ["/pets/0/tricks/0", "/pets/0/tricks/2"]
    assert pointers(b'{"pets": [{"kind": "bird"}]}') == ["/pets/0"]
    assert set(pointers(b'{"either": "x"}')) == {"/either"}
    assert pointers(b'{"either": [1, "x"]}')[-1] == "/either/1"
    assert pointers(b'{"tables": {"": {"kind": "cat", "lives": null}}}') == ["/tables//lives"]
    assert pointers(b'{"a/b~c": 1}') == ["/a~1b~0c"]
    assert pointers(b"[]") == [""]


def test_faults_are_bounded() -> None:
    assert len(pointers(b'{"pets": [%s]}' % b",".join([b"{}"] * 100))) == 20
    many = refusal(SHOP.operations["shop"], b'{"pets": [%s]}' % b",".join([b"{}"] * 5_000))
    assert [error.pointer for error in many.errors] == [""]
