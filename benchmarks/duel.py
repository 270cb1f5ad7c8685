"""Peers: the same job done by what a user would pick instead, each accepting for a while and then draining its queue.

Every run begins with fresh servers and empty stores. Our runs stand between those of the peers.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.accept import post
from benchmarks.asking import answers
from benchmarks.contenders import CONTENDERS, Contender, start_restate
from benchmarks.end_to_end import open_jobs
from benchmarks.load import Load, Target, drive
from benchmarks.peers.tally import read_tallies
from benchmarks.postgres import EVENTS, database
from benchmarks.programs import BenchFailed, Program, free_port
from benchmarks.rows import Plan, Row, at_least
from benchmarks.seeding import fresh_folder
from benchmarks.servers import PATH, coatcheck
from benchmarks.workbench import Workbench, prepare

SECTION = "peers: accept at 64 connections, as durably"
DRAIN_SECTION = "peers: drain what was accepted"
_PROMISED_FACTOR = 8.0
_FIRST_S_MAX = 30.0
_LOOK_S = 0.05
_PROMISED_FACTOR_ON_POSTGRES = 6.0
_PROMISED_DRAIN_SHARE = 0.60
_OURS = "Coatcheck"
_OURS_ON_POSTGRES = "Coatcheck on PostgreSQL"
_OURS_UNTOLD = "Coatcheck on PostgreSQL without events"
_ON_POSTGRES = ("FastAPI + procrastinate on PostgreSQL", "FastAPI + PgQueuer on PostgreSQL")
_DRAINS_ON_POSTGRES = "FastAPI + PgQueuer on PostgreSQL"
_RESTATE = "Restate, accepting and running at once"


@dataclass
class Runs:
    """What was seen of one of them. `fault` is why it could not be measured."""

    label: str
    accepts: list[Load] = field(default_factory=list)
    drains: list[float] = field(default_factory=list)
    fault: str = ""


def measure(plan: Plan, versions: dict[str, str]) -> list[Row]:
    """Rows for accepting and for draining. Adds the peers' versions to `versions`."""
    workbench = prepare(plan.tell)
    versions |= {name: workbench.versions[name] for name in _named(workbench)}
    seen = {name: Runs(name) for name in (_OURS, _OURS_ON_POSTGRES, _OURS_UNTOLD)} | {
        peer.name: Runs(peer.label(workbench.versions)) for peer in CONTENDERS
    }
    if workbench.restate is not None:
        seen[_RESTATE] = Runs(f"{_RESTATE} ({workbench.versions['restate-server']})")
    seen = {name: runs for name, runs in seen.items() if name.startswith(_OURS) or plan.peers.lower() in name.lower()}
    for number in range(plan.rounds):
        for name in seen:
            if not seen[name].fault:
                plan.tell(f"peers, {name}: round {number + 1} of {plan.rounds}")
                _run_once(name, seen[name], workbench, plan.seconds)
    shared, untold = seen.pop(_OURS_ON_POSTGRES), seen.pop(_OURS_UNTOLD)
    rows = [*_accept_rows(list(seen.values())), *_drain_rows(list(seen.values()))]
    return rows + _postgres_rows(shared, untold, {name: seen[name] for name in _ON_POSTGRES if name in seen})


def _named(workbench: Workbench) -> Sequence[str]:
    wanted = {"fastapi", "restate-server", *itertools.chain.from_iterable(peer.packages for peer in CONTENDERS)}
    return sorted(wanted & set(workbench.versions))


def _run_once(name: str, runs: Runs, workbench: Workbench, seconds: float) -> None:
    folder = fresh_folder("peer")
    try:
        if name == _OURS:
            load, drained = _run_ours(folder, seconds)
        elif name == _OURS_ON_POSTGRES:
            load, drained = _run_ours_on_postgres(seconds, EVENTS)
        elif name == _OURS_UNTOLD:
            load, drained = _run_ours_on_postgres(seconds, ())
        elif name == _RESTATE:
            load, drained = _run_restate(workbench, folder, seconds)
        else:
            peer = next(peer for peer in CONTENDERS if peer.name == name)
            load, drained = _run_peer(peer, workbench, folder, seconds)
    except BenchFailed as error:
        # One that cannot be measured here must not keep the others from it.
        runs.fault = str(error)
        return
    runs.accepts.append(load)
    runs.drains.append(drained)


def _run_ours(folder: Path, seconds: float) -> tuple[Load, float]:
    store, events = folder / "store.db", ["--events", "file:events.jsonl"]
    with coatcheck(store, "--roles", "api", *events) as serving:
        load = drive(post(serving, "key"), seconds)
    samples = [(time.monotonic(), open_jobs(store))]
    with coatcheck(store, *events):
        samples += _watch(lambda: (time.monotonic(), open_jobs(store)), seconds)
    return load, _rate(samples, seconds)


def _run_ours_on_postgres(seconds: float, events: Sequence[str]) -> tuple[Load, float]:
    with database("peer-ours") as where:
        with where.serve("--roles", "api", *events) as serving:
            load = drive(post(serving, "key"), seconds)
        samples = [(time.monotonic(), where.open_jobs())]
        with where.serve(*events):
            samples += _watch(lambda: (time.monotonic(), where.open_jobs()), seconds)
        return load, _rate(samples, seconds)


def _run_peer(peer: Contender, workbench: Workbench, folder: Path, seconds: float) -> tuple[Load, float]:
    with contextlib.ExitStack() as stack:
        server, store = peer.start_server(workbench, folder)
        if server is not None:
            stack.callback(server.stop)
        started = _Started(peer, workbench, folder, {"BENCH_STORE": store})
        if peer.setup:
            started.program([part.format(store=store) for part in peer.setup], "setup").finish()
        programs = [server] if server is not None else []
        with _api(started) as (api, url):
            load = drive(_posts(url, [*programs, api]), seconds)
        kind, *what = peer.left
        watcher = started.program(["python", "-m", "benchmarks.peers.left", kind, store, *what], "left")
        stack.callback(watcher.stop)
        watcher.wait_until(lambda: bool(watcher.log), "count of what is left")
        worker = started.program(peer.worker, "worker")
        stack.callback(worker.stop)
        _watch(lambda: _read_samples(watcher.log)[-1], seconds)
        return load, _rate(_read_samples(watcher.log), seconds)


def _watch(look: Callable[[], tuple[float, int]], seconds: float) -> list[tuple[float, int]]:
    """Look until nothing is left, or for `seconds` after the first job went.

    Raises:
        BenchFailed: none went.
    """
    samples = [look()]
    give_up_s = time.monotonic() + _FIRST_S_MAX
    while samples[-1][1] > 0 and time.monotonic() < give_up_s:
        time.sleep(_LOOK_S)
        samples.append(look())
        if samples[-1][1] < samples[0][1] and give_up_s > time.monotonic() + seconds:
            give_up_s = time.monotonic() + seconds
    if samples[-1][1] == samples[0][1] > 0:
        raise BenchFailed(f"No job was finished in {_FIRST_S_MAX:g} s.")
    return samples


def _read_samples(log: str) -> list[tuple[float, int]]:
    """What `benchmarks.peers.left` wrote: an instant (monotonic seconds) and a number on each line."""
    lines = [line.split() for line in log.splitlines(keepends=True) if line.endswith("\n")]
    return [(float(line[0]), int(line[1])) for line in lines]


def _run_restate(workbench: Workbench, folder: Path, seconds: float) -> tuple[Load, float]:
    restate = start_restate(workbench, folder)
    try:
        drive(_posts(restate.url, []), 1.0, warm_s=0)
        before, began_s = read_tallies(folder), time.monotonic()
        load = drive(_posts(restate.url, [restate.server, restate.service]), seconds, warm_s=0)
        return load, (read_tallies(folder) - before) / (time.monotonic() - began_s)
    finally:
        restate.service.stop()
        restate.server.stop()


@dataclass(frozen=True)
class _Started:
    """A peer whose database runs."""

    peer: Contender
    workbench: Workbench
    folder: Path
    variables: dict[str, str]

    def program(self, arguments: Sequence[str], name: str) -> Program:
        command = self.workbench.command(arguments, self.folder, self.variables, self.peer.environment)
        return Program(command, name)


@contextlib.contextmanager
def _api(started: _Started) -> Iterator[tuple[Program, str]]:
    """The peer's FastAPI app, served as fast as uvicorn can."""
    port = free_port()
    fast = ["--http", "httptools", "--loop", "uvloop", "--no-access-log", "--log-level", "warning", "--port", str(port)]
    program = started.program(["python", "-m", "uvicorn", f"benchmarks.peers.{started.peer.module}:app", *fast], "api")
    try:
        program.wait_until(lambda: answers(port, "/openapi.json"), "answer")
        yield program, f"http://127.0.0.1:{port}{PATH}"
    finally:
        program.stop()


def _posts(url: str, programs: Sequence[Program]) -> Target:
    return Target(url, "accept.lua", [str(int(time.time()) % 1_000_000_000), "plain", "0"], programs)


def _rate(samples: Sequence[tuple[float, int]], seconds: float) -> float:
    """Jobs a second from the last sight of the full queue, for at most `seconds` or until nothing was left."""
    full = samples[0][1]
    begin = next(number for number, sample in enumerate(samples) if sample[1] < full) - 1
    part = [sample for sample in samples[begin:] if sample[0] <= samples[begin][0] + seconds]
    end = next((sample for sample in part if sample[1] == 0), part[-1])
    return (part[0][1] - end[1]) / (end[0] - part[0][0])


def _accept_rows(seen: Sequence[Runs]) -> list[Row]:
    ours, *peers = seen
    rate = median(load.rate for load in ours.accepts)
    measured = [runs for runs in peers if runs.accepts]
    if not measured:
        raise BenchFailed(f"No peer could be measured: {'; '.join(runs.fault for runs in peers)}")
    best = max(measured, key=lambda runs: median(load.rate for load in runs.accepts))
    best_rate = median(load.rate for load in best.accepts)
    factor = rate / best_rate
    rows = [
        Row(
            SECTION,
            f"{ours.label}, everything on",
            rate,
            "/s",
            [load.rate for load in ours.accepts],
            beside=best_rate,
            beside_name="best peer",
            ratio=factor,
            verdict=at_least(_PROMISED_FACTOR, factor, f"{_PROMISED_FACTOR:g} x"),
            foreign_cores=median(load.foreign_cores for load in ours.accepts),
            extra={"p99_ms": median(load.p99_ms for load in ours.accepts)},
        )
    ]
    return rows + [_accept_row(runs, rate) for runs in peers]


def _accept_row(runs: Runs, our_rate: float) -> Row:
    if not runs.accepts:
        return Row(SECTION, runs.label, 0.0, "/s", extra={"fault": runs.fault})
    rate = median(load.rate for load in runs.accepts)
    return Row(
        SECTION,
        runs.label,
        rate,
        "/s",
        [load.rate for load in runs.accepts],
        beside=our_rate,
        beside_name="ours",
        ratio=our_rate / rate,
        foreign_cores=median(load.foreign_cores for load in runs.accepts),
        extra={
            "p99_ms": median(load.p99_ms for load in runs.accepts),
            "cpu_us": median(load.cpu_us for load in runs.accepts),
        },
    )


def _drain_rows(seen: Sequence[Runs]) -> list[Row]:
    ours = median(seen[0].drains)
    return [
        Row(
            DRAIN_SECTION,
            runs.label,
            median(runs.drains),
            "jobs/s",
            runs.drains,
            foreign_cores=median(load.foreign_cores for load in runs.accepts),
            beside=None if runs is seen[0] else ours,
            beside_name="" if runs is seen[0] else "ours",
            ratio=None if runs is seen[0] else ours / median(runs.drains),
        )
        for runs in seen
        if runs.drains
    ]


def _postgres_rows(ours: Runs, untold: Runs, peers: dict[str, Runs]) -> list[Row]:
    """Ours on PostgreSQL beside the peers that keep their jobs there, too."""
    for runs in (ours, untold):
        if runs.fault:
            return [Row(SECTION, runs.label, 0.0, "/s", extra={"fault": runs.fault})]
    foreign_cores = median(load.foreign_cores for load in ours.accepts)
    accepting = Row(
        SECTION,
        f"{ours.label}, everything on",
        median(load.rate for load in ours.accepts),
        "/s",
        [load.rate for load in ours.accepts],
        foreign_cores=foreign_cores,
        extra={"p99_ms": median(load.p99_ms for load in ours.accepts)},
    )
    draining, quiet = (
        Row(DRAIN_SECTION, runs.label, median(runs.drains), "jobs/s", runs.drains, foreign_cores=foreign_cores)
        for runs in (ours, untold)
    )
    rates = [median(load.rate for load in runs.accepts) for runs in peers.values() if runs.accepts]
    drains = [median(runs.drains) for name, runs in peers.items() if name == _DRAINS_ON_POSTGRES and runs.drains]
    return [
        _beside(accepting, max(rates, default=None), "best on PostgreSQL", _PROMISED_FACTOR_ON_POSTGRES),
        _beside(draining, max(drains, default=None), "PgQueuer", _PROMISED_DRAIN_SHARE),
        replace(_beside(quiet, max(drains, default=None), "PgQueuer", _PROMISED_DRAIN_SHARE), verdict=None),
    ]


def _beside(row: Row, other: float | None, name: str, promised: float) -> Row:
    """The row beside another's figure, if that could be measured."""
    if other is None:
        return row
    factor = row.value / other
    verdict = at_least(promised, factor, f"{promised:g} x")
    return replace(row, beside=other, beside_name=name, ratio=factor, verdict=verdict)
