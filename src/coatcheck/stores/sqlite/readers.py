"""Reading without waiting for the writer: WAL gives every reader the last commit.

Reads of one job are answered on the event loop, where they take microseconds; lists and measures, whose length is
somebody else's choice, in threads.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from coatcheck.store.errors import StoreUnavailable
from coatcheck.stores.sqlite.connection import FAILURES, open_reader, unavailable
from coatcheck.stores.sqlite.rows import Row
from coatcheck.stores.sqlite.statements import sql

T = TypeVar("T")

READER_THREADS = 2


class Snapshot:
    """Statements by name on a connection that only reads."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def row(self, statement: str, /, **values: Any) -> Row | None:
        """The first row, or None."""
        rows = self._connection.execute(sql(statement), values).fetchall()
        return rows[0] if rows else None

    def rows(self, statement: str, /, **values: Any) -> list[Row]:
        """All rows; every statement that can return many has a limit."""
        return self._connection.execute(sql(statement), values).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> "Snapshot":
        self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")


class Readers:
    """One connection for the event loop, one for each reader thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inline = Snapshot(open_reader(path))
        self._connections: list[apsw.Connection] = []
        self._local = threading.local()
        self._is_closed = False
        self._pool = ThreadPoolExecutor(READER_THREADS, "coatcheck-reader")

    def here(self, read: Callable[[Snapshot], T]) -> T:
        """Read a few rows by key, on the event loop."""
        self._check_open()
        try:
            return read(self._inline)
        except FAILURES as error:
            raise unavailable(self._path, error) from error

    async def aside(self, read: Callable[[Snapshot], T]) -> T:
        """Read in a thread, all statements in one snapshot."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)

    async def close(self) -> None:
        """Wait for the reads under way and close every connection."""
        self._is_closed = True
        await asyncio.to_thread(self._pool.shutdown)
        for connection in self._connections:
            connection.close()
        self._inline.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("The store is closed.")

    def _read(self, read: Callable[[Snapshot], T]) -> T:
        try:
            with self._snapshot() as snapshot:
                return read(snapshot)
        except FAILURES as error:
            raise unavailable(self._path, error) from error

    def _snapshot(self) -> Snapshot:
        """This thread's own. Where it cannot be opened (no descriptor left), the next read tries again."""
        snapshot: Snapshot | None = getattr(self._local, "snapshot", None)
        if snapshot is None:
            connection = open_reader(self._path)
            self._connections.append(connection)
            snapshot = self._local.snapshot = Snapshot(connection)
        return snapshot
