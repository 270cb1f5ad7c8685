"""One lane of store kills: forks a writer, kills it at a random moment, has the next one look, again and again.

A program of its own (`python -m torture.store_lane FOLDER KILLS SEED`), because only a process with one thread and no
open database may fork writers. Prints one JSON line for each file it has used up.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coatcheck.store.clock import SystemClock
from torture.store_writer import Memory, write_for_ever

KILLS_EACH_FILE = 100
EARLY_SHARE = 0.15
EARLY_S_MAX = 0.03
LATE_S_MAX = 0.012
PATIENCE_S = 60.0
CLOCK = SystemClock()


@dataclass
class Tally:
    """What happened on one file."""

    kills: int = 0
    early_kills: int = 0
    acknowledged: int = 0
    finished: int = 0
    unanswered: int = 0
    replayed: int = 0
    faults: list[str] = field(default_factory=list)


class Lane:
    """Kills on one file, one after the other."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self._path = path
        self._chance = chance
        self._memory = Memory()
        self.tally = Tally()

    def run(self, kills: int) -> Tally:
        """Kill that many writers; then let a last one look at everything."""
        for _ in range(kills):
            self._kill_one()
        self._hear(self._live_until(None))
        self.tally.acknowledged = len(self._memory.accepted)
        self.tally.finished = len(self._memory.finished)
        self.tally.replayed = self._memory.replayed
        return self.tally

    def _kill_one(self) -> None:
        is_early = self._chance.random() < EARLY_SHARE
        self.tally.kills += 1
        self.tally.early_kills += is_early
        self._hear(self._live_until(self._chance.uniform(0, EARLY_S_MAX if is_early else LATE_S_MAX), is_early))
        self.tally.unanswered += len(self._memory.sent)

    def _live_until(self, kill_after_s: float | None, is_early: bool = False) -> list[str]:
        """Everything a writer said. It is killed so many seconds after its start, or after it has looked."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            _be_writer(self._path, self._memory, theirs, is_last=kill_after_s is None)
        os.close(theirs)
        heard = b"" if is_early else _read_until(ours, b"looked\n", CLOCK.monotonic_s() + PATIENCE_S)
        if kill_after_s is not None:
            heard += _read_until(ours, None, CLOCK.monotonic_s() + kill_after_s)
            os.kill(child, signal.SIGKILL)
        heard += _read_until(ours, None, CLOCK.monotonic_s() + PATIENCE_S)
        os.close(ours)
        _, status = os.waitpid(child, 0)
        if kill_after_s is None and os.waitstatus_to_exitcode(status) != 0:
            self.tally.faults.append(f"{self._path.name}: the last writer ended with {status}")
        return heard.decode().splitlines(keepends=True)

    def _hear(self, lines: list[str]) -> None:
        for line in lines:
            if line.startswith("fault "):
                self.tally.faults.append(f"{self._path.name}: {line[6:].strip()}")
            elif line.endswith("\n"):
                self._memory.hear(line.split())


def _be_writer(path: Path, memory: Memory, out: int, is_last: bool) -> None:
    try:
        asyncio.run(write_for_ever(path, memory, lambda line: _tell(out, line), is_last))
    except BaseException as error:
        _tell(out, f"fault {type(error).__name__} {error}".replace("\n", " "))
        os._exit(1)
    os._exit(0)


def _tell(out: int, line: str) -> None:
    os.write(out, line.encode() + b"\n")


def _read_until(source: int, ending: bytes | None, until_s: float) -> bytes:
    """What comes before the ending was read, the moment has come, or nothing can come any more."""
    heard = b""
    while ending is None or ending not in heard:
        left_s = until_s - CLOCK.monotonic_s()
        if left_s <= 0 or not select.select([source], [], [], left_s)[0]:
            return heard
        piece = os.read(source, 65536)
        if not piece:
            return heard
        heard += piece
    return heard


def main(folder: str, kills: str, seed: str) -> None:
    left, number = int(kills), 0
    chance = random.Random(seed)  # noqa: S311 - moments that can be chosen again
    while left > 0:
        lane = Lane(Path(folder) / f"{seed}-{number}.db", chance)
        tally = lane.run(min(left, KILLS_EACH_FILE))
        left -= tally.kills
        number += 1
        sys.stdout.write(json.dumps(asdict(tally)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
