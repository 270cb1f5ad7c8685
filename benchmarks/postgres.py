"""Coatcheck on PostgreSQL: accepting, reading, draining and starting; and what a second process of each kind brings."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from benchmarks.accept import accept_row, measure_bare, post, sample_answer
from benchmarks.asking import ask
from benchmarks.end_to_end import start_rows
from benchmarks.load import CONNECTIONS, Load, Target, drive
from benchmarks.programs import BenchFailed, Program
from benchmarks.rows import Plan, Row, at_least, foreign, median_of, paired_ratio
from benchmarks.seeding import fresh_folder
from benchmarks.servers import PATH, Serving, bare, coatcheck_on
from benchmarks.workbench import start_own_postgres

SECTION = "on PostgreSQL, 64 connections, one runner in each worker"
EVENTS = ("--events", "file:events.jsonl")
_PROMISED_READ_SHARE = 0.60
_PROMISED_TOGETHER = 1.0
_READ_JOBS = 5_000
_DRAIN_S_MAX = 120.0
_LOOK_S = 0.1

_OPEN = "SELECT (SELECT count(*) FROM coatcheck.ready) + (SELECT count(*) FROM coatcheck.lease)"
_DONE = """
SELECT count(*), min(started_at), max(finished_at) FROM coatcheck.job WHERE status = 'succeeded'
"""
_NEWEST = f"""
SELECT id FROM coatcheck.job WHERE status = 'succeeded' ORDER BY id DESC LIMIT {_READ_JOBS}
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class Database:
    """An empty database with the server below it."""

    program: Program
    url: str
    folder: Path

    def serve(self, *options: str) -> contextlib.AbstractContextManager[Serving]:
        """`coatcheck serve` on it."""
        return coatcheck_on(self.url, self.folder, *options)

    def rows(self, statement: str) -> list[Any]:
        """The rows of a statement."""
        return asyncio.run(self._rows(statement))

    def open_jobs(self) -> int:
        """How many jobs wait or run."""
        return int(self.rows(_OPEN)[0][0])

    async def _rows(self, statement: str) -> list[Any]:
        connection = await asyncpg.connect(self.url)
        try:
            return list(await connection.fetch(statement))
        finally:
            await connection.close()


@contextlib.contextmanager
def database(name: str, settings: Sequence[str] = ()) -> Iterator[Database]:
    """A server of its own, for one measurement."""
    folder = fresh_folder(name)
    program, url = start_own_postgres(folder, settings)
    try:
        yield Database(program, url, folder)
    finally:
        program.stop()


@dataclass
class Runs:
    """What all rounds brought."""

    accepts: list[Load]
    bares: list[Load]
    drains: list[float]
    drains_untold: list[float]
    reads: list[Load]
    bare_reads: list[Load]
    accepts_of_two: list[float]
    drains_of_two: list[float]


def measure(plan: Plan) -> list[Row]:
    """Rows for one process of each kind, and for two."""
    runs = Runs([], [], [], [], [], [], [], [])
    for number in range(plan.rounds):
        plan.tell(f"PostgreSQL: round {number + 1} of {plan.rounds}")
        with database("postgres-one") as one:
            _run_one(one, plan, runs)
        with database("postgres-untold") as untold:
            _run_untold(untold, plan, runs)
        plan.tell(f"PostgreSQL, two processes of each kind: round {number + 1} of {plan.rounds}")
        with database("postgres-two") as two:
            _run_two(two, plan, runs)
    with database("postgres-start") as idle:
        starts = start_rows(SECTION, idle.folder, idle.url)
    accept = accept_row(SECTION, "accept, everything on", runs.accepts, runs.bares)
    return [accept, _read_row(runs), *_together_rows(runs), *starts]


def drain(where: Database, workers: int = 1, events: Sequence[str] = EVENTS) -> float:
    """Jobs a second from the first start to the last end, by the store's own times.

    Raises:
        BenchFailed: it took too long.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(workers):
            stack.enter_context(where.serve("--roles", "worker,relay,upkeep", *events))
        give_up_s = time.monotonic() + _DRAIN_S_MAX
        while where.open_jobs():
            if time.monotonic() > give_up_s:
                raise BenchFailed(f"Not all jobs were done in {_DRAIN_S_MAX:g} s.")
            time.sleep(_LOOK_S)
    count, first_ms, last_ms = where.rows(_DONE)[0]
    return float(count / (last_ms - first_ms) * 1000)


def _run_one(where: Database, plan: Plan, runs: Runs) -> None:
    with where.serve("--roles", "api", *EVENTS) as serving:
        answer = sample_answer(serving)
        runs.accepts.append(drive(_posts(where, serving), plan.seconds))
    runs.bares.append(measure_bare(answer, plan.seconds))
    runs.drains.append(drain(where))
    _read(where, plan, runs)


def _run_untold(where: Database, plan: Plan, runs: Runs) -> None:
    """Without a channel for events: what a queue does that tells nobody."""
    with where.serve("--roles", "api") as serving:
        drive(_posts(where, serving), plan.seconds)
    runs.drains_untold.append(drain(where, events=()))


def _read(where: Database, plan: Plan, runs: Runs) -> None:
    """Finished jobs, whose entity tag the reader holds."""
    paths = where.folder / "paths"
    urls = [f"{PATH}/{row[0]}" for row in where.rows(_NEWEST)]
    paths.write_text("".join(f"{url}\n" for url in urls), "ascii")
    with where.serve("--roles", "api", *EVENTS) as serving:
        tag = ask(serving.port, "GET", urls[0]).header("etag")
        unchanged = ask(serving.port, "GET", urls[0], {"If-None-Match": tag})
        assert unchanged.status == 304, unchanged
        runs.reads.append(drive(_gets(serving, paths, tag), plan.seconds))
    with bare(unchanged, where.folder) as serving:
        runs.bare_reads.append(drive(_gets(serving, paths, tag), plan.seconds))


def _gets(serving: Serving, paths: Path, tag: str) -> Target:
    return Target(serving.url, "status.lua", [str(paths), tag], [serving.program])


def _posts(where: Database, serving: Serving, connections: int = CONNECTIONS) -> Target:
    """POSTs, whose CPU time counts that of PostgreSQL."""
    target = post(serving, "key")
    return replace(target, programs=[*target.programs, where.program], connections=connections)


def _run_two(where: Database, plan: Plan, runs: Runs) -> None:
    with where.serve("--roles", "api", *EVENTS) as first, where.serve("--roles", "api", *EVENTS) as second:
        targets = [_posts(where, serving, CONNECTIONS // 2) for serving in (first, second)]
        with ThreadPoolExecutor(len(targets)) as pool:
            loads = list(pool.map(lambda target: drive(target, plan.seconds), targets))
    runs.accepts_of_two.append(sum(load.rate for load in loads))
    runs.drains_of_two.append(drain(where, workers=2))


def _read_row(runs: Runs) -> Row:
    ratio = paired_ratio(runs.reads, runs.bare_reads)
    return Row(
        SECTION,
        "finished job, matching ETag (304)",
        median_of(runs.reads, lambda load: load.rate),
        "/s",
        [load.rate for load in runs.reads],
        beside=median_of(runs.bare_reads, lambda load: load.rate),
        beside_name="bare server",
        ratio=ratio,
        verdict=at_least(_PROMISED_READ_SHARE, ratio, f"{_PROMISED_READ_SHARE:.0%}"),
        foreign_cores=foreign(runs.reads, runs.bare_reads),
        extra={"p99_ms": median_of(runs.reads, lambda load: load.p99_ms)},
    )


def _together_rows(runs: Runs) -> list[Row]:
    """Draining, and what two processes of a kind do beside one."""
    others = foreign(runs.accepts)
    one = [load.rate for load in runs.accepts]
    return [
        _drained_row("what was accepted, drained, every event told to a file", runs.drains, others),
        _drained_row("the same without events", runs.drains_untold, others),
        _together_row("accept by two API processes", runs.accepts_of_two, one, "/s", others),
        _together_row("drained by two worker processes", runs.drains_of_two, runs.drains, "jobs/s", others),
    ]


def _drained_row(what: str, drains: Sequence[float], others: float) -> Row:
    return Row(SECTION, what, median(drains), "jobs/s", drains, foreign_cores=others)


def _together_row(what: str, two: Sequence[float], one: Sequence[float], unit: str, others: float) -> Row:
    ratio = median(a / b for a, b in zip(two, one, strict=True))
    return Row(
        SECTION,
        what,
        median(two),
        unit,
        two,
        beside=median(one),
        beside_name="one process",
        ratio=ratio,
        verdict=at_least(_PROMISED_TOGETHER, ratio, f"{_PROMISED_TOGETHER:g} x"),
        foreign_cores=others,
    )
