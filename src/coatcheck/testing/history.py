"""One history format for every client, worker and receiver of a test: JSON lines, one for each call and its end.

A line is one write to a file opened for appending, so that many processes may share a file and a killed process
loses at most the line it was writing. A timeout or a lost connection is `unknown`, never a failure.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coatcheck.store.clock import Clock, SystemClock


class Mark(StrEnum):
    """What a line tells of its call: that it began, or how it ended."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. `at_us` is the machine's monotonic clock in microseconds, the same for all its processes."""

    at_us: int
    who: str
    mark: Mark
    what: str
    job_id: str | None = None
    tenant: str | None = None
    key: str | None = None
    version: int | None = None
    attempt: int | None = None
    token: str | None = None
    http_status: int | None = None
    more: dict[str, Any] = field(default_factory=dict)


class HistoryWriter:
    """Appends the lines of one participant.

    Args:
        path: the file; participants may share it or have one each.
        who: the participant, unique in the test.
    """

    def __init__(self, path: Path, who: str, clock: Clock | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.who = who
        self._clock = clock or SystemClock()

    def write(self, mark: Mark, what: str, **fields: Any) -> None:
        """Add a line. `fields` are those of Entry; what it has no field for belongs into `more`."""
        entry = Entry(round(self._clock.monotonic_s() * 1_000_000), self.who, mark, what, **fields)
        members = {name: value for name, value in asdict(entry).items() if value is not None and value != {}}
        os.write(self._file, json.dumps(members).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_history(paths: Iterable[Path]) -> list[Entry]:
    """All entries of these files in the order of their time. A line cut off by a kill is left out."""
    entries = [entry for path in paths for entry in _entries(path)]
    return sorted(entries, key=lambda entry: entry.at_us)


def _entries(path: Path) -> Iterator[Entry]:
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            members = json.loads(line)
            yield Entry(**members | {"mark": Mark(members["mark"])})
