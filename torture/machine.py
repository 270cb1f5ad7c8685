"""The facts of the machine that figures must be read with."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import apsw

from coatcheck.stores.sqlite.connection import file_system_of


def facts(folder: Path) -> dict[str, str]:
    """Where and when, as short words."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "file system": file_system_of(folder.resolve()) or "unknown",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
