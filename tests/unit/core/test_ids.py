"""Job ids: in order, unguessable, of one form."""

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.ids import ALPHABET, RANDOM_BITS, IdSequence, is_job_id, make_job_id

_US = st.integers(min_value=0, max_value=2**56 - 1)
_RANDOM = st.integers(min_value=0, max_value=2**RANDOM_BITS - 1)
_NOW_US = 1_767_600_000_000_000


@given(_US, _RANDOM)
def test_every_id_has_the_form_of_one(created_at_us: int, random_bits: int) -> None:
    job_id = make_job_id(created_at_us, random_bits)
    assert is_job_id(job_id)
    assert len(job_id) == 32
    number = 0
    for char in job_id.removeprefix("job_"):
        number = number * 32 + ALPHABET.index(char)
    assert number == (created_at_us << RANDOM_BITS) | random_bits


@given(_US, _US, _RANDOM, _RANDOM)
def test_ids_sort_by_creation(one_us: int, other_us: int, one_random: int, other_random: int) -> None:
    one, other = (one_us, one_random), (other_us, other_random)
    assert (make_job_id(*one) < make_job_id(*other)) is (one < other)


def test_most_of_an_id_is_random() -> None:
    assert RANDOM_BITS >= 80
    ids = [make_job_id(_NOW_US, secrets.randbits(RANDOM_BITS)) for _ in range(1_000)]
    assert len(set(ids)) == len(ids)
    for place in range(-(RANDOM_BITS // 5), 0):
        assert len({job_id[place] for job_id in ids}) > 16


@given(st.lists(_US.filter(lambda value: value < 2**55), min_size=2, max_size=30))
def test_a_sequence_rises_whatever_the_clock_does(times_us: list[int]) -> None:
    sequence = IdSequence()
    ids = [sequence.next_id(now_us, secrets.randbits(RANDOM_BITS)) for now_us in times_us]
    assert ids == sorted(set(ids))


def test_a_sequence_follows_the_clock_where_it_can() -> None:
    sequence = IdSequence()
    assert sequence.next_id(_NOW_US, 7) == make_job_id(_NOW_US, 7)
    assert sequence.next_id(_NOW_US, 7) == make_job_id(_NOW_US + 1, 7)
    assert sequence.next_id(_NOW_US + 1_000, 7) == make_job_id(_NOW_US + 1_000, 7)


_ID = make_job_id(_NOW_US, 12345)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job_",
        _ID[:-1],
        _ID + "0",
        _ID.upper(),
        _ID + "\n",
        " " + _ID,
        "jab" + _ID[3:],
        _ID[:-1] + "u",
        _ID[:-1] + "i",
        _ID[:-1] + "l",
        _ID[:-1] + "o",
        _ID[:-1] + "é",
        _ID[:-1] + "/",
        _ID[:-1] + "٣",
    ],
)
def test_other_texts_name_no_job(text: str) -> None:
    assert not is_job_id(text)
