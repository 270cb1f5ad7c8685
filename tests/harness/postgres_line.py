"""A line to PostgreSQL that passes on every word, but not that the server has hung up: the moment before it is seen."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness.postgres_pooler import SOCKET, Streams

_CHUNK_BYTES = 65_536


@asynccontextmanager
async def silent_line(server_folder: Path, database: str) -> AsyncIterator[str]:
    """The DSN by which clients reach the database over such a line."""
    folder = Path(tempfile.mkdtemp(prefix="coatcheck-line-"))
    tasks: set[asyncio.Task[None]] = set()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server: Streams = await asyncio.open_unix_connection(server_folder / SOCKET)
        tasks.add(asyncio.create_task(_pass_on(reader, server[1])))
        tasks.add(asyncio.create_task(_pass_on(server[0], writer)))

    listening = await asyncio.start_unix_server(join, folder / SOCKET)
    try:
        yield f"postgresql://postgres@/{database}?host={folder}"
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        shutil.rmtree(folder)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until there is no more to read; the other side is not told."""
    try:
        while words := await reader.read(_CHUNK_BYTES):
            writer.write(words)
        await asyncio.Event().wait()
    finally:
        writer.close()
