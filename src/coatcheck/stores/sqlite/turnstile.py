"""Turns for writers in several processes.

SQLite's busy handler polls and can starve a second writer. Two file locks make a queue of it: who holds the gate
is next, who holds the turn writes; a writer that comes back must pass the gate behind those who wait there.
"""

import fcntl
import os
from pathlib import Path


class Turnstile:
    """Used by one thread as a context manager. The kernel gives both locks back when a process dies."""

    def __init__(self, path: Path) -> None:
        self._gate = os.open(f"{path}-gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._turn = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of both lock files."""
        os.close(self._gate)
        os.close(self._turn)
