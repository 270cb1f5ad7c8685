"""Answers that are ready in one turn of the event loop, written one after the other at its end.

A client that sleeps is woken by what is written to it, and waking it may cost the system more than the whole request.
Of answers written together, the first wakes whoever waits, and the others find them awake.
"""

import asyncio


class Outgoing:
    """What is to be written to each connection in this turn, in order."""

    def __init__(self) -> None:
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write soon. Whoever writes to or closes a connection by another way must `flush` before."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._waiting.append((transport, data))

    def flush(self) -> None:
        """Write what waits, now."""
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                transport.write(data)
