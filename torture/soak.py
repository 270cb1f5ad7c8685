"""A day in 24 minutes: retention ÷ 60, the shortest leases, steady work and background faults. Nothing may grow.

Two processes share the store: the one that is measured (API, relay, upkeep), and a worker that is killed and stopped.
After a warm-up in which retention comes into balance, memory, descriptors, rows, the log and lateness are measured, and
a straight line is laid through each.
"""

import os
import random
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import apsw
import psutil

from coatcheck.core import limits
from coatcheck.store.clock import SystemClock
from harness.processes import members_of_session
from harness.server import FRAGILE, Server
from pauses.stopped import let_time_pass
from torture.outcome import Outcome, Task
from torture.slopes import Series
from torture.soak_clients import Client

APP = "torture.soak_app:app"
LEASE_S = limits.LEASE_S_MIN
SETTINGS = FRAGILE | {
    "lease_s": f"{LEASE_S}",
    "heartbeat_s": f"{LEASE_S / 5}",
    "upkeep_interval_s": "0.05",
}
FAULT_EVERY_S = 4.0
SAMPLE_EVERY_S = 1.0
WARM_UP = 0.4
KEPT_SHARE = 1 / 24
KEPT_S_MIN = 10.0
RISE_SHARE_MAX = 0.1
CLOCK = SystemClock()

_ROWS = ("job", "payload", "result", "attempt", "effect", "idempotency_key", "tombstone", "outbox", "lease", "ready")

FLOORS = {
    "memory_mib": 4.0,
    "descriptors": 4.0,
    "rows": 300.0,
    "log_mib": 9.0,
    "late_ms": 300.0,
}
"""What a line may rise over the whole measured time and still count as flat: the noise of the measure itself."""


@dataclass
class Soak:
    """One soak in its folder."""

    task: Task
    series: dict[str, Series] = field(default_factory=lambda: {name: Series() for name in FLOORS})
    client: Client = field(default_factory=Client)
    faults_made: dict[str, int] = field(default_factory=dict)
    is_over: threading.Event = field(default_factory=threading.Event)


def run(task: Task) -> Outcome:
    """`task.amount` seconds."""
    soak = Soak(task)
    with (
        mock.patch.dict(os.environ, TORTURE_KEPT_S=f"{max(KEPT_S_MIN, task.amount * KEPT_SHARE):.3f}"),
        _served(task.folder) as (api, worker),
    ):
        chance = random.Random(task.seed)  # noqa: S311 - faults that can be made again
        threads = [
            threading.Thread(target=soak.client.work, args=(api.url, soak.is_over), name="client"),
            threading.Thread(target=_make_faults, args=(soak, api, worker, chance), name="faults"),
        ]
        for thread in threads:
            thread.start()
        _measure(soak, api)
        soak.is_over.set()
        for thread in threads:
            thread.join()
    return _outcome(soak)


@contextmanager
def _served(folder: Path) -> Iterator[tuple[Server, "Worker"]]:
    arguments = ["--roles", "api,relay,upkeep"]
    api = Server(folder, arguments, SETTINGS | {"events": f"file:{folder / 'events.jsonl'}"}, APP)
    worker = Worker(folder)
    try:
        api.start()
        worker.start()
        yield api, worker
    finally:
        api.kill()
        worker.kill()


class Worker:
    """The worker process of the moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        assert self._server is not None, "not started"
        return self._server

    def start(self) -> None:
        settings = SETTINGS | {"events": f"file:{self._folder / 'events.jsonl'}"}
        self._server = Server(self._folder, ["--roles", "worker"], settings, APP).start()

    def kill(self) -> None:
        if self._server is not None:
            self._server.kill()


def _measure(soak: Soak, api: Server) -> None:
    began_s = CLOCK.monotonic_s()
    process = psutil.Process(api.process.pid)
    for second in range(soak.task.amount):
        let_time_pass(max(0.0, began_s + second * SAMPLE_EVERY_S - CLOCK.monotonic_s()))
        soak.task.advance(1)
        late_ms = soak.client.take_late_ms()
        if second < soak.task.amount * WARM_UP:
            continue
        values = {
            "memory_mib": process.memory_info().rss / 2**20,
            "descriptors": float(process.num_fds()),
            "rows": float(_count_rows(api.store)),
            "log_mib": Path(f"{api.store}-wal").stat().st_size / 2**20,
        }
        for name, value in values.items():
            soak.series[name].add(second, value)
        if late_ms:
            soak.series["late_ms"].add(second, median(late_ms))


def _count_rows(store: Path) -> int:
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5_000)
    try:
        return sum(row[0] for name in _ROWS for row in _rows(connection, f"SELECT count(*) FROM {name}"))  # noqa: S608 - our own names
    finally:
        connection.close()


def _rows(connection: apsw.Connection, statement: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
    return rows


def _make_faults(soak: Soak, api: Server, worker: Worker, chance: random.Random) -> None:
    faults: dict[str, Callable[[], None]] = {
        "runner killed": lambda: _signal_runner(worker, signal.SIGKILL),
        "runner stopped": lambda: _stop_runner(worker),
        "worker killed": lambda: _kill_worker(worker),
        "worker stopped": lambda: _stop(worker.server.process.pid),
        "disk full": lambda: _fill_disk(api),
    }
    while not soak.is_over.wait(chance.uniform(0.5, 1.5) * FAULT_EVERY_S):
        name = chance.choice(list(faults))
        faults[name]()
        soak.faults_made[name] = soak.faults_made.get(name, 0) + 1


def _signal_runner(worker: Worker, number: signal.Signals) -> None:
    for runner in members_of_session(worker.server.process.pid)[:1]:
        os.kill(runner, number)


def _stop_runner(worker: Worker) -> None:
    for runner in members_of_session(worker.server.process.pid)[:1]:
        _stop(runner)


def _kill_worker(worker: Worker) -> None:
    worker.kill()
    worker.start()


def _stop(process: int) -> None:
    os.kill(process, signal.SIGSTOP)
    let_time_pass(3 * LEASE_S)
    os.kill(process, signal.SIGCONT)


def _fill_disk(api: Server) -> None:
    """Its files may not grow for a while: what is written beyond that fails as on a full disk."""
    process = api.process.pid
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, before[1]))
    let_time_pass(3 * LEASE_S)
    resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def _outcome(soak: Soak) -> Outcome:
    client = soak.client
    counts = {"accepted": client.accepted, "seen to end": client.ended, "refused with 503": client.refused}
    outcome = Outcome({"seconds": soak.task.amount, **counts})
    outcome.figures |= dict(sorted(soak.faults_made.items()))
    outcome.faults += client.broken
    for name, series in soak.series.items():
        rise = series.rise()
        outcome.figures[name] = f"{series.mean():.1f} (rose by {rise:.1f})"
        if rise > max(FLOORS[name], RISE_SHARE_MAX * series.mean()):
            outcome.faults.append(f"{name} rose by {rise:.1f} from about {series.mean():.1f}")
    return outcome
