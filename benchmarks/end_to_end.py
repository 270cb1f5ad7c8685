"""Doing: jobs accepted beforehand, drained by one control process with one runner; and how soon an idle one starts."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import apsw

from benchmarks.asking import ask
from benchmarks.machine import Share
from benchmarks.programs import BenchFailed
from benchmarks.rows import Plan, Row, Verdict, at_least, at_most
from benchmarks.seeding import Seed, copy_of, fresh_folder, make_store
from benchmarks.servers import Serving, coatcheck, coatcheck_on, submit

SECTION = "end to end, no-op async jobs, one runner"
JOBS = 40_000
_PROMISED_RATE = 8_000
_PROMISED_START_MS = 10.0
_STARTS = 200
_IDLE_S = 0.03
_DRAIN_S_MAX = 120.0


@dataclass(frozen=True)
class Drain:
    """Jobs a second from the first start to the last end, as the store's own times tell."""

    rate: float
    foreign_cores: float
    cpu_us: float


@dataclass(frozen=True)
class Start:
    """How long after its POST was sent, and after its 202 was read, a job's handler ran."""

    after_sent_ms: float
    after_202_ms: float


def measure(plan: Plan) -> list[Row]:
    """Rows for draining without and with events, and for the start from idle."""
    folder = fresh_folder("end-to-end")
    make_store(folder / "seed.db", Seed(queued=JOBS))
    plain, told = [], []
    for number in range(plan.rounds):
        plan.tell(f"end to end: round {number + 1} of {plan.rounds}")
        plain.append(_drain(folder, []))
        told.append(_drain(folder, ["--events", "file:events.jsonl"]))
    plan.tell("start latency")
    rate = median(drain.rate for drain in plain)
    return [
        _row(f"{JOBS:,} jobs drained", plain, at_least(_PROMISED_RATE, rate, f"{_PROMISED_RATE:,}/s")),
        _row("the same, every event told to a file", told),
        *start_rows(SECTION, fresh_folder("start")),
    ]


def open_jobs(store: Path) -> int:
    """How many jobs wait or run."""
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        waiting = "SELECT coalesce((SELECT sum(waiting) FROM turn), 0) + (SELECT count(*) FROM lease)"
        count: int = connection.execute(waiting).get
        return count
    finally:
        connection.close()


def _drain(folder: Path, options: Sequence[str]) -> Drain:
    store = copy_of(folder / "seed.db")
    with coatcheck(store, *options) as serving:
        share = Share([serving.program])
        share.begin()
        serving.program.wait_until(lambda: open_jobs(store) == 0, "end of all jobs", _DRAIN_S_MAX)
        share.end()
    connection = apsw.Connection(str(store))
    times = "SELECT count(*), min(started_at), max(finished_at) FROM job WHERE status = 'succeeded'"
    # One of them was finished before, as a template; it lies outside of what is counted.
    row = connection.execute(f"{times} AND id > (SELECT min(id) FROM job WHERE status = 'succeeded')").get  # noqa: S608 - our own text
    connection.close()
    count, first_ms, last_ms = row
    if count < JOBS:
        raise BenchFailed(f"Only {count} of {JOBS} jobs succeeded.")
    return Drain(count / (last_ms - first_ms) * 1000, share.foreign_cores, share.own_cpu_s / count * 1e6)


def _row(what: str, drains: Sequence[Drain], verdict: Verdict | None = None) -> Row:
    return Row(
        SECTION,
        what,
        median(drain.rate for drain in drains),
        "jobs/s",
        [drain.rate for drain in drains],
        verdict=verdict,
        foreign_cores=median(drain.foreign_cores for drain in drains),
        extra={"cpu_us": round(median(drain.cpu_us for drain in drains), 1)},
    )


def start_rows(section: str, folder: Path, store_url: str | None = None) -> list[Row]:
    """How soon an idle server starts a job. Without a URL the store is a file in the folder."""
    with coatcheck_on(store_url or f"sqlite:///{folder / 'store.db'}", folder) as serving:
        share = Share([serving.program])
        _time_start(serving)
        share.begin()
        starts = [_time_start(serving) for _ in range(_STARTS)]
        share.end()
    after_202 = [start.after_202_ms for start in starts]
    after_sent = [start.after_sent_ms for start in starts]
    p50_ms = median(after_202)
    return [
        Row(
            section,
            "202 read → handler runs, idle, p50",
            p50_ms,
            "ms",
            verdict=at_most(_PROMISED_START_MS, p50_ms, f"{_PROMISED_START_MS:g} ms"),
            foreign_cores=share.foreign_cores,
            extra={"p99_ms": quantiles(after_202, n=100)[98]},
        ),
        Row(
            section,
            "POST sent → handler runs, idle, p50",
            median(after_sent),
            "ms",
            foreign_cores=share.foreign_cores,
            extra={"p99_ms": quantiles(after_sent, n=100)[98]},
        ),
    ]


def _time_start(serving: Serving) -> Start:
    """Hand in one job on an idle server; its result is the instant at which its handler ran."""
    sent_ns = time.time_ns()
    location = submit(serving.port).header("location")
    accepted_ns = time.time_ns()
    job = json.loads(ask(serving.port, "GET", location, {"Prefer": "wait=10"}).body)
    time.sleep(_IDLE_S)
    return Start((job["result"] - sent_ns) / 1e6, (job["result"] - accepted_ns) / 1e6)
