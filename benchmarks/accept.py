"""Accepting: POST at 64 connections, beside a bare server that reads the body and answers with the same bytes."""

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw

from benchmarks.asking import Answer
from benchmarks.load import CONNECTIONS, Load, Target, drive
from benchmarks.programs import BenchFailed
from benchmarks.rows import Plan, Row, at_least, at_most, foreign, median_of, paired_ratio
from benchmarks.seeding import fresh_folder
from benchmarks.servers import Serving, bare, coatcheck, submit

SECTION = "accept (202), 64 connections"
_PROMISED_SHARE = 0.45
_P99_MS = 25.0
_TUNING_S = 2.0
_runs = itertools.count(int(time.time()) % 1_000_000 * 100)


@dataclass(frozen=True)
class Variant:
    """What is switched on."""

    what: str
    with_events: bool
    key: str


EVERYTHING = Variant("everything on: validation, key, outbox, counters", True, "key")
PLAIN = Variant("without key and events", False, "plain")


def measure(plan: Plan) -> list[Row]:
    """Rows for both variants, and for the delay at half of the load."""
    ours: dict[str, list[Load]] = {EVERYTHING.what: [], PLAIN.what: []}
    bares: list[Load] = []
    answer = _sample_answer()
    for number in range(plan.rounds):
        plan.tell(f"accept: round {number + 1} of {plan.rounds}")
        bares.append(measure_bare(answer, plan.seconds))
        for variant in (EVERYTHING, PLAIN):
            ours[variant.what].append(_measure_ours(variant, plan.seconds))
    rows = [_row(variant, ours[variant.what], bares) for variant in (EVERYTHING, PLAIN)]
    return [*rows, _bare_row(bares), *_half_load(plan, rows[0].value / 2)]


@contextlib.contextmanager
def accepting(variant: Variant) -> Iterator[Serving]:
    """A server with the role api alone, on an empty store."""
    folder = fresh_folder("accept")
    events = ["--events", "file:events.jsonl"] if variant.with_events else []
    with coatcheck(folder / "store.db", "--roles", "api", *events) as serving:
        yield serving


def post(serving: Serving, key: str, pause_ms: float = 0.0) -> Target:
    """POSTs to this server."""
    arguments = [str(next(_runs)), key, f"{pause_ms:.3f}"]
    return Target(serving.url, "accept.lua", arguments, [serving.program])


def _sample_answer() -> Answer:
    with accepting(EVERYTHING) as serving:
        return sample_answer(serving)


def sample_answer(serving: Serving) -> Answer:
    """A real 202, for the bare server to repeat."""
    answer = submit(serving.port, "sample")
    assert answer.status == 202, answer
    return answer


def at_rate(serving: Serving, rate: float, seconds: float) -> Load:
    """Load near `rate` requests a second, from connections that pause between an answer and their next request."""
    cycle_ms = CONNECTIONS / rate * 1000
    pause_ms = cycle_ms * 0.8
    tuning = drive(post(serving, "key", pause_ms), _TUNING_S)
    # What a cycle takes beside the pause is measured once; the pause makes up for the rest.
    beside_ms = CONNECTIONS / tuning.rate * 1000 - pause_ms
    return drive(post(serving, "key", max(0.5, cycle_ms - beside_ms)), seconds, warm_s=0)


def measure_bare(answer: Answer, seconds: float) -> Load:
    """The same load on a bare server that gives this answer."""
    with bare(answer, fresh_folder("bare")) as serving:
        return drive(post(serving, "key"), seconds)


def _measure_ours(variant: Variant, seconds: float) -> Load:
    with accepting(variant) as serving:
        load = drive(post(serving, variant.key), seconds)
        store = serving.folder / "store.db"
    stored: int = apsw.Connection(str(store)).execute("SELECT count(*) FROM job").get
    if stored < load.requests:
        raise BenchFailed(f"{load.requests} requests were accepted, but only {stored} jobs are stored.")
    return load


def _row(variant: Variant, ours: Sequence[Load], bares: Sequence[Load]) -> Row:
    return accept_row(SECTION, variant.what, ours, bares, is_promised=variant is EVERYTHING)


def accept_row(section: str, what: str, ours: Sequence[Load], bares: Sequence[Load], is_promised: bool = True) -> Row:
    """What was accepted beside what the bare server answered."""
    ratio = paired_ratio(ours, bares)
    return Row(
        section,
        what,
        median_of(ours, lambda load: load.rate),
        "/s",
        [load.rate for load in ours],
        beside=median_of(bares, lambda load: load.rate),
        beside_name="bare server",
        ratio=ratio,
        verdict=at_least(_PROMISED_SHARE, ratio, f"{_PROMISED_SHARE:.0%}") if is_promised else None,
        foreign_cores=foreign(ours, bares),
        extra=details(ours),
    )


def _bare_row(bares: Sequence[Load]) -> Row:
    rates = [load.rate for load in bares]
    rate = median_of(bares, lambda load: load.rate)
    return Row(SECTION, "the bare server", rate, "/s", rates, foreign_cores=foreign(bares), extra=details(bares))


def _half_load(plan: Plan, rate: float) -> list[Row]:
    loads = []
    for number in range(plan.rounds):
        plan.tell(f"accept at half load: round {number + 1} of {plan.rounds}")
        with accepting(EVERYTHING) as serving:
            loads.append(at_rate(serving, rate, plan.seconds))
    p99_ms = median_of(loads, lambda load: load.p99_ms)
    what = f"p99 at half of that load ({median_of(loads, lambda load: load.rate):,.0f}/s)"
    values = [load.p99_ms for load in loads]
    verdict = at_most(_P99_MS, p99_ms, f"{_P99_MS:g} ms")
    return [
        Row(SECTION, what, p99_ms, "ms", values, verdict=verdict, foreign_cores=foreign(loads), extra=details(loads))
    ]


def details(loads: Sequence[Load]) -> dict[str, float | str]:
    """Delays and CPU time."""
    return {
        "p50_ms": round(median_of(loads, lambda load: load.p50_ms), 2),
        "p99_ms": round(median_of(loads, lambda load: load.p99_ms), 2),
        "max_ms": round(median_of(loads, lambda load: load.max_ms), 2),
        "cpu_us": round(median_of(loads, lambda load: load.cpu_us), 1),
    }
