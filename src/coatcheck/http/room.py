"""Memory that all requests share: a bound on what the bodies, or the answers, of all of them hold at once.

Where memory is short, the bound is low: what refuses with 503 today answers again tomorrow, and what dies does not.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from coatcheck.core import limits
from coatcheck.http.refusals import saturated
from coatcheck.observe.memory import memory_bytes_max


class Room:
    """So many bytes, and no more."""

    def __init__(self, largest: Iterable[int]) -> None:
        """`largest`: what single requests may need, in bytes; there is room for each of them at least."""
        share = memory_bytes_max() // limits.ROOM_PART_OF_MEMORY
        self.free_bytes = max([min(share, limits.ROOM_BYTES_MAX), *largest])

    def share(self) -> "Share":
        """One request's part, given back at the end of a `with`."""
        return Share(self)


class Share:
    """What one request holds of a room."""

    __slots__ = ("_held_bytes", "_room")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._held_bytes = 0

    def take(self, count: int) -> None:
        """Hold so many bytes more.

        Raises:
            Refused: `saturated`: the room has not so many left.
        """
        if count > self._room.free_bytes:
            raise saturated("The bodies and results of other requests take all the memory this server has for them.")
        self._room.free_bytes -= count
        self._held_bytes += count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._room.free_bytes += self._held_bytes
        self._held_bytes = 0
