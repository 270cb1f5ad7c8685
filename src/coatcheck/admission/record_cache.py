"""Records of the store that are asked for at every request, remembered until the controls of the store change."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from coatcheck.admission.directory import Directory
from coatcheck.core import limits

V = TypeVar("V")


class _NotRead(Enum):
    NOT_READ = 0


NotRead: TypeAlias = Literal[_NotRead.NOT_READ]
NOT_READ: Final = _NotRead.NOT_READ


class RecordCache(Generic[V]):
    """Remembers what there is, and in a place of its own what there is not, so that guesses push out nothing.

    Args:
        read: asks the store; None where there is no such record.
        directory: says when everything is to be forgotten.
    """

    def __init__(self, read: Callable[[str], Awaitable[V | None]], directory: Directory) -> None:
        self._read = read
        self._found: dict[str, V] = {}
        self._missing: dict[str, None] = {}
        self._reading: dict[str, asyncio.Task[V | None]] = {}
        self._readers = asyncio.Semaphore(limits.CREDENTIAL_READS_MAX)
        self._changes = 0
        directory.on_change(self._forget)

    def recall(self, name: str) -> V | NotRead | None:
        """The record, None if it is known that there is none, or NOT_READ."""
        found = self._found.get(name)
        if found is not None:
            return found
        return None if name in self._missing else NOT_READ

    async def find(self, name: str) -> V | None:
        """The record, read from the store where it is not remembered; once for all who ask at the same time.

        Raises:
            StoreUnavailable: it could not be read.
        """
        remembered = self.recall(name)
        if remembered is not NOT_READ:
            return remembered
        reading = self._reading.get(name)
        if reading is None:
            reading = self._reading[name] = asyncio.create_task(self._find(name))
            reading.add_done_callback(lambda done: self._end_reading(name, done))
        # Whoever asked first may leave, and the others still wait.
        return await asyncio.shield(reading)

    async def _find(self, name: str) -> V | None:
        async with self._readers:
            while True:
                changes = self._changes
                found = await self._read(name)
                # What was read before a change and remembered after it would never be forgotten.
                if changes == self._changes:
                    break
        if found is None:
            _remember(self._missing, name, None, limits.CREDENTIALS_UNKNOWN_MAX)
        else:
            _remember(self._found, name, found, limits.CREDENTIALS_REMEMBERED_MAX)
        return found

    def _end_reading(self, name: str, done: asyncio.Task[V | None]) -> None:
        del self._reading[name]
        if not done.cancelled():
            # Everybody who asked may have left: then nobody else takes note of a failure.
            done.exception()

    def _forget(self) -> None:
        self._changes += 1
        self._found.clear()
        self._missing.clear()


T = TypeVar("T")


def _remember(remembered: dict[str, T], name: str, value: T, size_max: int) -> None:
    if len(remembered) >= size_max:
        del remembered[next(iter(remembered))]
    remembered[name] = value
