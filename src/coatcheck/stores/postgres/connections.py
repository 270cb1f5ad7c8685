"""The connections of this process: lent for one transaction or one read, opened again by themselves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coatcheck.store.clock import Clock
from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.connection import (
    DRIVER_ERRORS,
    Connection,
    connect,
    is_away,
    is_unavailable,
    unavailable,
)

CLOSE_S_MAX = 5.0


class Connections:
    """At most so many at once; whoever comes when all are lent waits for one. Belongs to one event loop."""

    def __init__(self, config: PostgresConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._places = asyncio.Semaphore(config.connections)
        self._free: list[Connection] = []
        self._is_closed = False
        self.failed_at_s: float | None = None
        """When, in monotonic seconds, the server last could not be reached, ended a session, or kept no lease."""

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """A connection with no transaction open, to be given back like that.

        Raises:
            StoreUnavailable: the server cannot be reached, or the store is closed.
        """
        self._check_open()
        async with self._places:
            self._check_open()
            connection = self._take() or await self._connect()
            try:
                yield connection
            except BaseException as error:
                self._give_back_after(connection, error)
                raise
            self._free.append(connection)

    async def close(self) -> None:
        """Let go of every connection. Nobody may hold one any more."""
        self._is_closed = True
        for connection in self._free:
            try:
                await connection.close(timeout=CLOSE_S_MAX)
            except DRIVER_ERRORS:
                connection.terminate()
        self._free.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("The store is closed.")

    def _take(self) -> Connection | None:
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
            self.note_failure()
        return None

    async def _connect(self) -> Connection:
        try:
            return await connect(self._config.dsn, self._config.is_pooled)
        except StoreUnavailable:
            self.note_failure()
            raise
        except StoreRefused as error:
            # It was good when the store was opened. Nothing is written there until it is again.
            raise unavailable(error) from error

    def _give_back_after(self, connection: Connection, error: BaseException) -> None:
        """Keep a connection on which only a statement failed; where the state of a session is unknown, end it."""
        if is_away(error):
            self.note_failure()
        is_sound = isinstance(error, Exception) and not is_unavailable(error)
        if is_sound and not connection.is_closed() and not connection.is_in_transaction():
            self._free.append(connection)
        else:
            connection.terminate()

    def note_failure(self) -> None:
        """The server is away, or leases could not be kept there: whose have run out meanwhile, nobody knows."""
        self.failed_at_s = self._clock.monotonic_s()
