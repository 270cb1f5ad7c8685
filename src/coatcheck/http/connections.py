"""All connections of a server, and who makes room when there are too many: the one that has kept it waiting longest."""

import asyncio
from dataclasses import dataclass, replace

from coatcheck.http.outgoing import Outgoing
from coatcheck.observe.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The bounds of a connection, and how many there may be."""

    connections_max: int
    headers_bytes_max: int
    headers_timeout_s: float
    keep_alive_s: float

    def with_connections_max(self, connections_max: int) -> "ConnectionLimits":
        """The same with another number of connections."""
        return replace(self, connections_max=connections_max)


class Connections:
    """Every connection by its transport. Those the server waits for stand in the order in which the wait began."""

    def __init__(self, limits: ConnectionLimits, metrics: Metrics) -> None:
        self.limits = limits
        self.outgoing = Outgoing()
        self._metrics = metrics
        self._all: set[asyncio.Transport] = set()
        self._awaited: dict[asyncio.Transport, None] = {}
        self._emptied = asyncio.Event()

    def add(self, connection: asyncio.Transport) -> None:
        """Take a connection in, at the cost of the one that is awaited longest if there are too many."""
        self._all.add(connection)
        self._awaited[connection] = None
        if len(self._all) > self.limits.connections_max:
            longest_awaited = next(iter(self._awaited))
            self.remove(longest_awaited)
            self.outgoing.flush()
            longest_awaited.abort()
        self._metrics.set("http_connections", len(self._all))

    def remove(self, connection: asyncio.Transport) -> None:
        """A connection is gone."""
        self._all.discard(connection)
        self._awaited.pop(connection, None)
        self._metrics.set("http_connections", len(self._all))
        if not self._all:
            self._emptied.set()

    def set_busy(self, connection: asyncio.Transport) -> None:
        """A whole request has come: the client waits for the server."""
        self._awaited.pop(connection, None)

    def set_awaited(self, connection: asyncio.Transport) -> None:
        """An answer has gone, or headers have come: the server waits for the client, as of now."""
        if connection in self._all:
            self._awaited.pop(connection, None)
            self._awaited[connection] = None

    async def wait_empty(self, timeout_s: float) -> None:
        """Return when no connection is left, or after `timeout_s` seconds."""
        if not self._all:
            return
        self._emptied.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()
        except TimeoutError:
            return
