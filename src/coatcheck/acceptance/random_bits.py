"""Random bits for ids from the system's generator, fetched in bulk: each call of it lets other threads in."""

import os

from coatcheck.core.ids import RANDOM_BITS

_BYTES = -(-RANDOM_BITS // 8)
_SHIFT = _BYTES * 8 - RANDOM_BITS
_BLOCK = 512


class RandomBits:
    """Hands out RANDOM_BITS unguessable bits at a time, each bit once."""

    def __init__(self) -> None:
        self._block = b""
        self._used = 0

    def next_bits(self) -> int:
        if self._used >= len(self._block):
            self._block, self._used = os.urandom(_BYTES * _BLOCK), 0
        bits = int.from_bytes(self._block[self._used : self._used + _BYTES], "big") >> _SHIFT
        self._used += _BYTES
        return bits
