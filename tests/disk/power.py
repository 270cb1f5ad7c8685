"""Power loss: a recording of everything that reached the files, and the disks a cut at any moment could leave.

What was synced is there. What was written since the last sync of its file may be there, missing or torn at sectors, in
any combination. What was written before a sync that failed may be gone for good, as on Linux.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from disk.edge import Told
from disk.file_layer import OK, Act, Call, FileLayer, Watcher, laid

SECTOR_BYTES = 512


class Cut(StrEnum):
    """What becomes of the writes that no sync made safe."""

    NONE = "none"
    ALL = "all"
    SOME = "some"
    TORN = "torn"


@dataclass(frozen=True, slots=True)
class Step:
    """A call and how it ended, or what the client had been told by then."""

    call: Call | None
    code: int = OK
    told: Told | None = None


class Recording:
    """The files of one store as they were in the beginning, and every step since."""

    def __init__(self, path: Path) -> None:
        self._files = {name: file.read_bytes() for name in _names(path) if (file := Path(name)).exists()}
        self._path = path
        self.steps: list[Step] = []
        self.plan: Watcher = lambda call: OK

    def watch(self, call: Call) -> int:
        """The watcher of a file layer; `plan` may fail the call."""
        code = self.plan(call)
        self.steps.append(Step(call, code))
        return code

    def tell(self, told: Told) -> None:
        """Note what the client knows now."""
        self.steps.append(Step(None, told=told.copy()))

    def note_mark(self, path: str, content: bytes) -> None:
        """The mark may have reached the disk the moment it was written, which is the worst it can do."""
        self.steps.append(Step(Call(Act.WRITE, path, 0, content)))
        self.steps.append(Step(Call(Act.SYNC, path)))

    def cut(self, at: int, how: Cut, seed: int, folder: Path) -> tuple[Path, Told]:
        """Write the disk that a cut before step `at` leaves. Returns the store's path and what had been told."""
        chance = random.Random(seed)  # noqa: S311 - a disk that can be made again
        told, disk = Told(), _Disk(self._files, how, chance)
        for step in self.steps[:at]:
            if step.call is None:
                assert step.told is not None
                told = step.told
            else:
                disk.take(step.call, step.code)
        disk.lose_power()
        folder.mkdir()
        for name, content in disk.files.items():
            (folder / os.path.basename(name)).write_bytes(content)
        return folder / self._path.name, told


class _Disk:
    def __init__(self, files: dict[str, bytes], how: Cut, chance: random.Random) -> None:
        self.files = {name: bytearray(content) for name, content in files.items()}
        self._unsynced: dict[str, list[Call]] = {}
        self._how = how
        self._chance = chance

    def take(self, call: Call, code: int) -> None:
        if call.act is not Act.SYNC:
            if code == OK:
                self._unsynced.setdefault(call.path, []).append(call)
            return
        for waiting in self._unsynced.pop(call.path, []):
            self._apply(waiting, Cut.ALL if code == OK else self._how)

    def lose_power(self) -> None:
        for calls in self._unsynced.values():
            for call in calls:
                self._apply(call, self._how)

    def _apply(self, call: Call, how: Cut) -> None:
        content = self.files.setdefault(call.path, bytearray())
        if how is Cut.TORN and call.act is Act.WRITE:
            for start, end in _sectors(call):
                if self._chance.random() < 0.5:
                    _put(content, start, call.content[start - call.offset : end - call.offset])
        elif how is Cut.ALL or (how is not Cut.NONE and self._chance.random() < 0.5):
            if call.act is Act.WRITE:
                _put(content, call.offset, call.content)
            else:
                del content[call.offset :]


def _sectors(call: Call) -> Iterator[tuple[int, int]]:
    start, end = call.offset, call.offset + len(call.content)
    while start < end:
        border = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield start, border
        start = border


def _put(content: bytearray, offset: int, written: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(written)] = written


def _names(path: Path) -> list[str]:
    return [str(path), f"{path}-wal", f"{path}-mark"]


@contextmanager
def recorded(path: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[Recording, FileLayer]]:
    """Record everything that reaches this store's files inside the block."""
    recording = Recording(path)
    pwrite = os.pwrite

    def note_and_write(file: int, content: bytes, offset: int) -> int:
        recording.note_mark(f"{path}-mark", content)
        return pwrite(file, content, offset)

    with patch.context() as patched, laid(recording.watch) as layer:
        # Nobody but the mark writes like this.
        patched.setattr(os, "pwrite", note_and_write)
        yield recording, layer
