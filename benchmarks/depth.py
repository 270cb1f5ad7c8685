"""Depth: how much slower accepting and claiming are, and how much larger the server, when the file is full of jobs."""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import apsw

from benchmarks.accept import post
from benchmarks.load import Load, drive
from benchmarks.machine import Share
from benchmarks.programs import BenchFailed
from benchmarks.rows import PROMISED_SHARE_IN_DEPTH, Plan, Row, at_least, at_most, depth_accept_row
from benchmarks.seeding import Seed, copy_of, fresh_folder, make_store
from benchmarks.servers import coatcheck

_CACHE_MIB = 80.0
_EMPTY_JOBS = 60_000
_WARM_S = 1.5


@dataclass(frozen=True)
class Accepting:
    """Load on a server, and its memory after it."""

    load: Load
    rss_mib: float


@dataclass(frozen=True)
class Claiming:
    """Jobs a second that one runner finished."""

    rate: float
    rss_mib: float
    foreign_cores: float


def measure(plan: Plan) -> list[Row]:
    """Rows for accepting, claiming and memory, each beside an empty file."""
    folder = fresh_folder("depth")
    plan.tell(f"depth: making {plan.depth:,} queued and {plan.depth:,} finished jobs")
    make_store(folder / "full-seed.db", Seed(queued=plan.depth, finished=plan.depth))
    make_store(folder / "empty-seed.db", Seed())
    make_store(folder / "few-seed.db", Seed(queued=_EMPTY_JOBS))
    accepts: dict[str, list[Accepting]] = {"full": [], "empty": []}
    claims: dict[str, list[Claiming]] = {"full": [], "few": []}
    for number in range(plan.rounds):
        plan.tell(f"depth: round {number + 1} of {plan.rounds}")
        for name in ("empty", "full"):
            accepts[name].append(_accept(folder, name, plan.seconds))
        for name in ("few", "full"):
            claims[name].append(_claim(folder, name, plan.seconds))
    section = f"with {plan.depth:,} queued and {plan.depth:,} finished jobs on file"
    full, empty = ([accepting.load for accepting in accepts[name]] for name in ("full", "empty"))
    accept_row = depth_accept_row(section, full, empty, "empty file")
    rows = [accept_row, _claim_row(section, claims), *_memory_rows(section, accepts, claims)]
    fresh_folder("depth")
    return rows


def _accept(folder: Path, name: str, seconds: float) -> Accepting:
    store = copy_of(folder / f"{name}-seed.db")
    with coatcheck(store, "--roles", "api", "--events", "file:events.jsonl") as serving:
        load = drive(post(serving, "key"), seconds)
        return Accepting(load, serving.program.rss_mib())


def _claim(folder: Path, name: str, seconds: float) -> Claiming:
    store = copy_of(folder / f"{name}-seed.db")
    with coatcheck(store) as serving:
        time.sleep(_WARM_S)
        share = Share([serving.program])
        share.begin()
        began_ms = time.time_ns() // 1_000_000
        time.sleep(seconds)
        ended_ms = time.time_ns() // 1_000_000
        share.end()
        rss_mib = serving.program.rss_mib()
        serving.program.kill()
    connection = apsw.Connection(str(store))
    query = "SELECT count(*), max(finished_at) FROM attempt WHERE finished_at BETWEEN ? AND ?"
    count, last_ms = connection.execute(query, (began_ms, ended_ms)).get
    connection.close()
    if not count:
        raise BenchFailed("No job was finished.")
    return Claiming(count / (last_ms - began_ms) * 1000, rss_mib, share.foreign_cores)


def _claim_row(section: str, claims: dict[str, list[Claiming]]) -> Row:
    full, few = claims["full"], claims["few"]
    ratio = median(a.rate / b.rate for a, b in zip(full, few, strict=True))
    return Row(
        section,
        "claim, run and finish",
        median(claiming.rate for claiming in full),
        "jobs/s",
        [claiming.rate for claiming in full],
        beside=median(claiming.rate for claiming in few),
        beside_name=f"{_EMPTY_JOBS:,} jobs, no history",
        ratio=ratio,
        verdict=at_least(PROMISED_SHARE_IN_DEPTH, ratio, f"{PROMISED_SHARE_IN_DEPTH:.0%}"),
        foreign_cores=median(claiming.foreign_cores for claiming in [*full, *few]),
    )


def _memory_rows(section: str, accepts: dict[str, list[Accepting]], claims: dict[str, list[Claiming]]) -> list[Row]:
    api = {name: [one.rss_mib for one in group] for name, group in accepts.items()}
    control = {name: [one.rss_mib for one in group] for name, group in claims.items()}
    return [
        _memory_row(section, "memory of the API process after the load", api["full"], api["empty"]),
        _memory_row(section, "memory of the control process after the run", control["full"], control["few"]),
    ]


def _memory_row(section: str, what: str, full: list[float], other: list[float]) -> Row:
    value, beside = median(full), median(other)
    # The page cache is bounded, and only a large file fills it.
    verdict = at_most(beside + _CACHE_MIB, value, f"+{_CACHE_MIB:g} MiB, the page cache")
    return Row(section, what, value, "MiB", full, beside, "little on file", value / beside, verdict)
