"""Memory that all requests share: a bound on what the bodies, or the answers, of all of them hold at once.

Where memory is short, the bound is low: what refuses with 503 today answers again tomorrow, and what dies does not.

A tenant holds no more than it leaves free. So one that is alone has half of the room, two have a third each, and
whatever any of them does, the next one finds room, too. (Choudhury and Hahne, "Dynamic queue length thresholds for
shared-memory packet switches", 1998, with a factor of one.)
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
        """`largest`: what single requests may need, in bytes; a tenant that holds nothing may have each of them."""
        share = memory_bytes_max() // limits.ROOM_PART_OF_MEMORY
        self._largest_bytes = max(largest, default=0)
        self._free_bytes = max(min(share, limits.ROOM_BYTES_MAX), self._largest_bytes)
        self._held_bytes: dict[str, int] = {}

    def share(self, tenant: str) -> "Share":
        """One request's part of what its tenant may hold, given back at the end of a `with`."""
        return Share(self, tenant)

    def take(self, tenant: str, count: int) -> None:
        """Hold so many bytes more for the tenant.

        Raises:
            Refused: `saturated`: the room has not so many left, or not for this tenant.
        """
        left_bytes = self._free_bytes - count
        if left_bytes < 0:
            raise saturated("The bodies and results of other requests take all the memory this server has for them.")
        held_bytes = self._held_bytes.get(tenant, 0) + count
        if held_bytes > max(left_bytes, self._largest_bytes):
            raise saturated("This tenant's other requests take all the memory one may have for bodies and results.")
        self._free_bytes = left_bytes
        self._held_bytes[tenant] = held_bytes

    def give_back(self, tenant: str, count: int) -> None:
        """Hold so many bytes less for the tenant."""
        self._free_bytes += count
        held_bytes = self._held_bytes.get(tenant, 0) - count
        if held_bytes > 0:
            self._held_bytes[tenant] = held_bytes
        else:
            self._held_bytes.pop(tenant, None)


class Share:
    """What one request holds of a room."""

    __slots__ = ("_held_bytes", "_room", "_tenant")

    def __init__(self, room: Room, tenant: str) -> None:
        self._room = room
        self._tenant = tenant
        self._held_bytes = 0

    def take(self, count: int) -> None:
        """Hold so many bytes more.

        Raises:
            Refused: `saturated`: there is no room for so many.
        """
        self._room.take(self._tenant, count)
        self._held_bytes += count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held_bytes:
            self._room.give_back(self._tenant, self._held_bytes)
            self._held_bytes = 0
