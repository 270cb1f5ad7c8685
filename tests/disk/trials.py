"""One trial: a short life on a disk whose n-th call fails, once or until it is mended."""

import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from unittest import mock

import apsw

from coatcheck.stores.sqlite import writer as writer_module
from disk.edge import Client, broken_promises, open_edge
from disk.file_layer import OK, Act, Call, laid

CHECKPOINT_PAGES = 40
ROUNDS = 6


class Failure(Enum):
    """What a call ends with: SQLite's codes for a write, for a sync, and for cutting a file."""

    EIO = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE)
    ENOSPC = (apsw.SQLITE_FULL, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE)


@dataclass
class FaultyDisk:
    """Fails its `nth` call, and those after it too where it stays broken. Counts from the moment it is armed."""

    failure: Failure
    nth: int
    stays_broken: bool
    calls: int = 0
    is_armed: bool = False
    has_failed: bool = False

    def __call__(self, call: Call) -> int:
        if not self.is_armed:
            return OK
        self.calls += 1
        if self.calls == self.nth or (self.stays_broken and self.calls > self.nth):
            self.has_failed = True
            return self.failure.value[list(Act).index(call.act)]
        return OK

    def arm(self) -> None:
        self.is_armed = True

    def mend(self) -> None:
        self.is_armed = False


@dataclass(frozen=True)
class Verdict:
    """How a trial ended. `broken` must be empty; `calls` tells how many there were to fail."""

    broken: list[str]
    calls: int
    has_failed: bool
    refusals: int


async def try_disk(template: Path, folder: Path, disk: FaultyDisk) -> Verdict:
    """Live on a copy of a closed store while the disk fails, mend it, live on, and look at the file afterwards."""
    path = _copy(template, folder)
    broken: list[str] = []
    with mock.patch.object(writer_module, "CHECKPOINT_PAGES", CHECKPOINT_PAGES), laid(disk):
        async with open_edge(path) as client:
            await client.submit()
            disk.arm()
            for _ in range(ROUNDS):
                await client.submit()
                await client.work()
                await client.read_all()
            disk.mend()
            broken += await _after_mending(client)
    broken += await broken_promises(path, client.told)
    shutil.rmtree(folder)
    return Verdict(broken, disk.calls, disk.has_failed, client.told.refusals)


def _copy(template: Path, folder: Path) -> Path:
    folder.mkdir()
    return Path(shutil.copyfile(template, folder / template.name))


async def _after_mending(client: Client) -> list[str]:
    before = client.told.refusals
    await client.submit()
    await client.work()
    await client.read_all()
    return [] if client.told.refusals == before else ["refused although the disk is well again"]
