"""Stopping processes and letting them go on, and waiting while they stand."""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until
from faults.scene import LEASE_S

LONGER_THAN_A_LEASE_S = 2 * LEASE_S
STOP_S = 30.0
CLOCK = SystemClock()


def is_stopped(process: int) -> bool:
    """Whether every thread of a process stands."""
    stat = Path(f"/proc/{process}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


def await_stop(process: int, look: Callable[[], object] = lambda: None) -> None:
    """Return when the process stands. What `look` raises meanwhile says why it never will."""

    def is_there() -> bool:
        look()
        return is_stopped(process)

    wait_until(is_there, f"process {process} to stop", STOP_S)


def is_turn_taken(store: Path) -> bool:
    """Whether a process stands with the writer's turn, or as the next one for it; no other can write then."""
    return any(_is_locked(Path(f"{store}-{name}")) for name in ("gate", "turn"))


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """Stop these processes for the block."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        for process in processes:
            await_stop(process)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def let_time_pass(seconds: float) -> None:
    """Nothing that could be waited for happens: the test is that time passes."""
    ends_at_s = CLOCK.monotonic_s() + seconds
    wait_until(lambda: CLOCK.monotonic_s() >= ends_at_s, "time to pass", seconds + 10)
