"""Programs that are measured: each in a process group of its own, with its log, its CPU time and its memory."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

START_S = 60.0
STOP_S = 20.0


class BenchFailed(Exception):
    """Nothing can be measured like this; the message says why, in one sentence."""


@dataclass(frozen=True)
class Command:
    """How a program is started."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class Program:
    """One running program with everything below it."""

    def __init__(self, command: Command, name: str) -> None:
        self.name = name
        self._log = command.folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command.arguments,
                cwd=command.folder,
                env=clean_environment() | dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def wait_until(self, predicate: Callable[[], bool], what: str, timeout_s: float = START_S) -> None:
        """Return once `predicate` holds.

        Raises:
            BenchFailed: the program ended, or it does not hold after `timeout_s` seconds.
        """
        give_up_s = time.monotonic() + timeout_s
        while not predicate():
            if self._process.poll() is not None:
                raise BenchFailed(f"{self.name} ended while waiting for {what}:\n{self.log[-2000:]}")
            if time.monotonic() > give_up_s:
                raise BenchFailed(f"{self.name}: no {what} after {timeout_s:g} s:\n{self.log[-2000:]}")
            time.sleep(0.05)

    def finish(self, timeout_s: float = START_S) -> None:
        """Wait for its end.

        Raises:
            BenchFailed: it failed.
        """
        if self._process.wait(timeout_s):
            raise BenchFailed(f"{self.name} failed:\n{self.log[-2000:]}")

    def cpu_s(self) -> float:
        """CPU seconds of it and of what runs below it."""
        return sum(_cpu_s(process) for process in self._all())

    def rss_mib(self) -> float:
        """Resident memory of the program itself, in MiB."""
        return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20

    def stop(self) -> None:
        """End it and everything below it, in order if it can, at once if not."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """End it and everything below it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_S)

    def _all(self) -> list[psutil.Process]:
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


@contextlib.contextmanager
def running(command: Command, name: str) -> Iterator[Program]:
    """A program for the time of the block."""
    program = Program(command, name)
    try:
        yield program
    finally:
        program.stop()


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of the product."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
