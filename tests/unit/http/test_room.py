"""Memory that tenants share: what one of them holds leaves enough to the next."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from coatcheck.core import limits
from coatcheck.core.problems import Refused
from coatcheck.http import room
from coatcheck.http.room import Room

ROOM_BYTES = 120
LARGEST_BYTES = 20


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_bytes_max", lambda: ROOM_BYTES * limits.ROOM_PART_OF_MEMORY)


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def take_all(room: Room, tenant: str, held: ExitStack, size: int = 1) -> int:
    """How many bytes the tenant gets in requests of `size` bytes until it is refused."""
    taken = 0
    while True:
        share = held.enter_context(room.share(tenant))
        try:
            share.take(size)
        except Refused:
            return taken
        taken += size


def test_one_tenant_has_half_of_the_room_and_each_next_one_half_of_what_is_left(held: ExitStack) -> None:
    room = Room([LARGEST_BYTES])
    assert [take_all(room, tenant, held) for tenant in ("one", "two")] == [60, 30]


def test_tenants_that_grow_in_turn_have_as_much_each_and_leave_as_much(held: ExitStack) -> None:
    room = Room([1])
    shares = [held.enter_context(room.share(tenant)) for tenant in ("one", "two")]
    for _ in range(40):
        for share in shares:
            share.take(1)
    for share in shares:
        with pytest.raises(Refused):
            share.take(1)
    assert take_all(room, "three", held) == 20


def test_who_holds_nothing_may_have_the_largest_piece(held: ExitStack) -> None:
    room = Room([80, LARGEST_BYTES])
    assert take_all(room, "one", held, 80) == 80
    assert take_all(room, "two", held, 40) == 40


def test_a_piece_that_comes_in_parts_may_be_as_large_as_one_that_comes_whole(held: ExitStack) -> None:
    assert take_all(Room([80]), "one", held) == 80


def test_where_memory_is_short_there_is_room_for_the_largest_piece(held: ExitStack) -> None:
    room = Room([2 * ROOM_BYTES])
    assert take_all(room, "one", held, 2 * ROOM_BYTES) == 2 * ROOM_BYTES
    assert take_all(room, "two", held) == 0


def test_what_is_given_back_can_be_had_again(held: ExitStack) -> None:
    room = Room([LARGEST_BYTES])
    for _ in range(3):
        with ExitStack() as inner:
            assert take_all(room, "one", inner) == 60
            assert take_all(room, "two", inner) == 30
    assert take_all(room, "two", held) == 60
