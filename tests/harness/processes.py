"""Processes of this machine, seen from outside."""

import os
from pathlib import Path

from coatcheck.testing.waiting import wait_until


def is_alive(pid: int) -> bool:
    """Whether a process lives; one that ended and was not yet reaped does not."""
    return _state_and_session(pid)[0] not in {"", "Z", "X"}


def wait_until_dead(pid: int, timeout_s: float = 20.0) -> None:
    wait_until(lambda: not is_alive(pid), f"process {pid} to die", timeout_s)


def members_of_session(session: int) -> list[int]:
    """The live processes of a session, but for its leader."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != session]
    return [pid for pid in pids if _state_and_session(pid)[1] == session and is_alive(pid)]


def _state_and_session(pid: int) -> tuple[str, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    return fields[0], int(fields[3])
