"""The clock mark of the processes that share a store: one line in a small file beside it.

It holds for one boot of one machine. A file that cannot be read or written costs agreement on a step, never an answer.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path

from coatcheck.store.clock import ClockMark

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


class ClockFile:
    """A MarkKeeper. `boot` names this boot, where a test wants another."""

    def __init__(self, path: Path, boot: str | None = None) -> None:
        self._path = path
        self._boot = _this_boot() if boot is None else boot

    def read(self) -> ClockMark | None:
        try:
            boot, *numbers = self._path.read_text("ascii").split()
            running_ns, offset_ns, target_ns = map(int, numbers)
        except (OSError, ValueError):
            return None
        return ClockMark(running_ns, offset_ns, target_ns) if boot == self._boot else None

    def write(self, mark: ClockMark) -> None:
        unfinished = self._path.with_name(f"{self._path.name}-{os.getpid()}-{threading.get_ident()}")
        line = f"{self._boot} {mark.running_ns} {mark.offset_ns} {mark.target_ns}\n"
        with suppress(OSError):
            unfinished.write_text(line, "ascii")
            unfinished.replace(self._path)


def _this_boot() -> str:
    """The boot, and the time namespace, in which the machine's uptime may be counted from elsewhere."""
    parts = []
    with suppress(OSError):
        parts.append(_BOOT.read_text("ascii").strip())
    with suppress(OSError):
        parts.append(os.readlink(_TIME_NAMESPACE))
    return "/".join(parts) or "unknown"
