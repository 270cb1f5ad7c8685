"""The machine the figures come from, and how much of it others used meanwhile."""

import os
import platform
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.programs import Program

_SYNCS = 200


def facts(folder: Path) -> dict[str, str | int | float]:
    """What a reader must know to compare figures. `folder`: where the stores will lie."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "fdatasync_ms": round(_sync_ms(folder), 3),
        "load_before": round(os.getloadavg()[0], 2),
    }


@dataclass
class Share:
    """How many cores others kept busy between `begin` and `end`, and what the measured programs used."""

    programs: Sequence[Program]
    own_cpu_s: float = 0.0
    foreign_cores: float = 0.0

    def begin(self) -> None:
        self._at_s = time.monotonic()
        self._busy_s = _busy_s()
        self._mine_s = self._mine()
        self._programs_s = self._sum()

    def end(self) -> None:
        busy_s, mine_s = _busy_s() - self._busy_s, self._mine() - self._mine_s
        self.own_cpu_s = self._sum() - self._programs_s
        foreign_s = max(0.0, busy_s - mine_s - self.own_cpu_s)
        self.foreign_cores = foreign_s / (time.monotonic() - self._at_s)

    def _sum(self) -> float:
        return sum(program.cpu_s() for program in self.programs)

    @staticmethod
    def _mine() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _sync_ms(folder: Path) -> float:
    """The median time of one fdatasync of 16 KiB."""
    path = folder / "sync.tmp"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        times = [_sync_once(file) for _ in range(_SYNCS)]
    finally:
        os.close(file)
        path.unlink()
    return median(times) * 1000


def _sync_once(file: int) -> float:
    os.pwrite(file, os.urandom(16 * 1024), 0)
    began_s = time.monotonic()
    os.fdatasync(file)
    return time.monotonic() - began_s
