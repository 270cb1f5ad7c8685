"""A pooler in transaction mode: what PgBouncer does to sessions, and nothing else of it.

A client has a session of the server only from the beginning to the end of a transaction, and hardly ever the same one
twice: sessions are lent in turn. What a client leaves behind in one, another finds, or nobody.
"""

import asyncio
import contextlib
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SOCKET = ".s.PGSQL.5432"
_PROTOCOL_3 = 196_608
_READY_IDLE = b"Z\x00\x00\x00\x05I"
_AUTHENTICATED = b"R\x00\x00\x00\x08\x00\x00\x00\x00"
_KEY = b"K\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00"


class Pooler:
    """Lends `size` sessions of one database. `dsn` is where clients come."""

    def __init__(self, server_folder: Path, database: str, size: int) -> None:
        self._server_socket = server_folder / SOCKET
        self._database = database
        self._size = size
        self._free: asyncio.Queue[Streams] = asyncio.Queue()
        self._greeting = b""
        self._clients: set[asyncio.Task[None]] = set()
        self._folder = Path(tempfile.mkdtemp(prefix="coatcheck-pooler-"))
        self.dsn = f"postgresql://postgres@/{database}?host={self._folder}"
        self.lent = 0

    async def open(self) -> None:
        """Open the sessions, then let clients in."""
        for _ in range(self._size):
            await self._free.put(await self._session())
        self._listening = await asyncio.start_unix_server(self._welcome, self._folder / SOCKET)

    async def close(self) -> None:
        """Send everybody away."""
        self._listening.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        while not self._free.empty():
            self._free.get_nowait()[1].close()
        shutil.rmtree(self._folder)

    async def _session(self) -> Streams:
        reader, writer = await asyncio.open_unix_connection(self._server_socket)
        text = f"user\0postgres\0database\0{self._database}\0client_encoding\0utf-8\0\0".encode()
        writer.write(struct.pack("!ii", len(text) + 8, _PROTOCOL_3) + text)
        greeting = b""
        while (message := await _message(reader)) != _READY_IDLE:
            greeting += message if message.startswith(b"S") else b""
        self._greeting = greeting
        return reader, writer

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._clients.add(task)
        try:
            (size,) = struct.unpack("!i", await reader.readexactly(4))
            await reader.readexactly(size - 4)
            writer.write(_AUTHENTICATED + self._greeting + _KEY + _READY_IDLE)
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await self._transaction(reader, writer)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _transaction(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One transaction of a client, on whichever session is free."""
        message = await _message(reader)
        if message.startswith(b"X"):
            raise ConnectionError("the client has said good-bye")
        session = await self._free.get()
        self.lent += 1
        session[1].write(message)
        onward = asyncio.create_task(_pass_on(reader, session[1]))
        try:
            while True:
                answer = await _message(session[0])
                writer.write(answer)
                if answer == _READY_IDLE:
                    break
        finally:
            onward.cancel()
            with contextlib.suppress(asyncio.CancelledError, asyncio.IncompleteReadError):
                await onward
        self._free.put_nowait(session)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(await _message(reader))


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    (size,) = struct.unpack("!i", head[1:])
    return head + await reader.readexactly(size - 4)


@contextlib.asynccontextmanager
async def pooled(server_folder: Path, database: str, size: int = 3) -> AsyncIterator[Pooler]:
    """A pooler that is closed in the end."""
    pooler = Pooler(server_folder, database, size)
    await pooler.open()
    try:
        yield pooler
    finally:
        await pooler.close()
