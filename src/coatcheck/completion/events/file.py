"""The channel `file:PATH`: one CloudEvent a line, on disk before it counts as told.

A line cut off by a crash or a full disk is taken back before anything is written behind it. A file that was moved
away, to rotate it, is begun anew.
"""

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import orjson

from coatcheck.completion.events.channel import ChannelRefused, ChannelUnavailable, EntryRefused
from coatcheck.completion.events.cloudevents import cloud_event, source_of
from coatcheck.core.events import OutboxEntry

_TAIL_BYTES = 64 * 1024


class FileChannel:
    """Appends events to one file. The relay's turn in the store lets only one process write at a time."""

    def __init__(self, path: Path, app_name: str) -> None:
        self._path = path
        self._source = source_of(app_name)
        self._file: int | None = None

    async def open(self) -> None:
        """Open the file, making it when it is missing.

        Raises:
            ChannelRefused: it cannot be opened for writing, or is no ordinary file.
        """
        try:
            await asyncio.to_thread(self._reopen)
        except OSError as error:
            raise ChannelRefused(f"The events file {self._path} cannot be written: {error.strerror}.") from error

    async def tell(self, entries: Sequence[OutboxEntry]) -> None:
        """Append the entries and force them to disk."""
        lines = b"".join(self._line(entry) for entry in entries)
        try:
            await asyncio.to_thread(self._append, lines)
        except OSError as error:
            raise ChannelUnavailable(f"the events file cannot be written: {error.strerror}") from error

    async def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _line(self, entry: OutboxEntry) -> bytes:
        try:
            return cloud_event(entry, self._source) + b"\n"
        except (orjson.JSONEncodeError, orjson.JSONDecodeError) as error:
            raise EntryRefused(f"the event of {entry.job_id} is not JSON") from error

    def _append(self, lines: bytes) -> None:
        if self._file is None or not self._is_same_file(self._file):
            self._reopen()
        assert self._file is not None
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            _write_all(self._file, lines)
            os.fsync(self._file)
        except OSError:
            # What is not surely on disk will be told again: no half line may stay in front of it.
            self._take_back(self._file, end)
            raise

    def _take_back(self, file: int, end: int) -> None:
        """Where that cannot be done, the file is opened anew for the next line, which drops a half one before it."""
        try:
            os.ftruncate(file, end)
        except OSError:
            os.close(file)
            self._file = None

    def _is_same_file(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _reopen(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(0, "it is no ordinary file")
        self._file = file
        _drop_half_line(file)
        _sync_directory(self._path)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _drop_half_line(file: int) -> None:
    """Cut off what stands behind the last line break."""
    end = os.lseek(file, 0, os.SEEK_END)
    start = end
    while start > 0:
        begin = max(0, start - _TAIL_BYTES)
        at = os.pread(file, start - begin, begin).rfind(b"\n")
        if at >= 0:
            start = begin + at + 1
            break
        start = begin
    if start < end:
        os.ftruncate(file, start)


def _sync_directory(path: Path) -> None:
    directory = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
