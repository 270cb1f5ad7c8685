"""What an issuer of tokens publishes its public keys as, and what can go wrong with that."""

from typing import Protocol


class KeySetUnavailable(Exception):
    """The key set cannot be had now, or is none; the message says why."""


class KeySetSource(Protocol):
    """Where the key set (RFC 7517) is read from. `is_local`: a fault of it is a fault of our own configuration."""

    is_local: bool

    async def fetch(self) -> bytes:
        """The set as JSON, within KEY_SET_S_MAX seconds and KEY_SET_BYTES_MAX bytes.

        Raises:
            KeySetUnavailable: it cannot be had.
        """
        ...
