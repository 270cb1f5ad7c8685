"""What the relay asks of a channel, and the two ways in which one can refuse."""

from collections.abc import Sequence
from typing import Protocol

from coatcheck.core.events import OutboxEntry


class ChannelUnavailable(Exception):
    """The channel takes nothing now, whatever the entry; try again later."""


class ChannelRefused(Exception):
    """This channel cannot be used at all; the message says why in one sentence."""


class EntryRefused(Exception):
    """The channel takes other entries, but not this one."""


class Channel(Protocol):
    """Where events are told. Telling is at least once: the same entry may come again."""

    async def open(self) -> None:
        """Get ready.

        Raises:
            ChannelRefused: the channel cannot be used.
        """
        ...

    async def tell(self, entries: Sequence[OutboxEntry]) -> None:
        """Tell the entries in order; when this returns, none of them can be lost by the channel.

        Raises:
            ChannelUnavailable, EntryRefused: some, from the first on, may have been told already.
        """
        ...

    async def close(self) -> None:
        """Let go."""
        ...
