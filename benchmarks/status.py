"""Reading: GET of many jobs at 64 connections, beside a bare server that gives the same answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from benchmarks.asking import Answer, ask
from benchmarks.load import Load, Target, drive
from benchmarks.rows import Plan, Row, at_least, foreign, median_of, paired_ratio
from benchmarks.seeding import Seed, fresh_folder, make_store
from benchmarks.servers import PATH, Serving, bare, coatcheck

SECTION = "read a job, 64 connections"
_JOBS = 5_000
_PROMISED_SHARE = 0.60


@dataclass(frozen=True)
class Variant:
    """Which jobs are read, and whether the reader holds their entity tag."""

    what: str
    condition: str
    with_tag: bool


VARIANTS = (
    Variant("finished job, matching ETag (304)", "status IS NOT NULL", True),
    Variant("queued job, matching ETag (304)", "status IS NULL", True),
    Variant("finished job (200)", "status IS NOT NULL", False),
)


def measure(plan: Plan) -> list[Row]:
    """One row for each variant."""
    folder = fresh_folder("status")
    store = folder / "store.db"
    make_store(store, Seed(queued=_JOBS, finished=_JOBS))
    paths = {variant.what: _write_paths(store, variant, folder / f"paths-{n}") for n, variant in enumerate(VARIANTS)}
    ours: dict[str, list[Load]] = {variant.what: [] for variant in VARIANTS}
    bares: dict[str, list[Load]] = {variant.what: [] for variant in VARIANTS}
    for number in range(plan.rounds):
        for variant in VARIANTS:
            plan.tell(f"status, {variant.what}: round {number + 1} of {plan.rounds}")
            with coatcheck(store, "--roles", "api") as serving:
                answer, target = _prepare(serving, variant, paths[variant.what])
                ours[variant.what].append(drive(target, plan.seconds))
            with bare(answer, folder) as serving:
                bares[variant.what].append(drive(_prepare(serving, variant, paths[variant.what])[1], plan.seconds))
    return [_row(variant, ours[variant.what], bares[variant.what]) for variant in VARIANTS]


def _prepare(serving: Serving, variant: Variant, paths: Path) -> tuple[Answer, Target]:
    """The answer to one such request, and the load."""
    first = paths.read_text("ascii").splitlines()[0]
    answer = ask(serving.port, "GET", first)
    arguments = [str(paths)]
    if variant.with_tag:
        tag = answer.header("etag")
        answer = ask(serving.port, "GET", first, {"If-None-Match": tag})
        arguments.append(tag)
    assert answer.status == (304 if variant.with_tag else 200), answer
    return answer, Target(serving.url, "status.lua", arguments, [serving.program])


def _write_paths(store: Path, variant: Variant, file: Path) -> Path:
    connection = apsw.Connection(str(store))
    query = f"SELECT id FROM job WHERE {variant.condition} ORDER BY id DESC LIMIT {_JOBS}"  # noqa: S608 - our own text
    file.write_text("".join(f"{PATH}/{row[0]}\n" for row in connection.execute(query)), "ascii")
    connection.close()
    return file


def _row(variant: Variant, ours: Sequence[Load], bares: Sequence[Load]) -> Row:
    ratio = paired_ratio(ours, bares)
    is_promised = variant is VARIANTS[0]
    return Row(
        SECTION,
        variant.what,
        median_of(ours, lambda load: load.rate),
        "/s",
        [load.rate for load in ours],
        beside=median_of(bares, lambda load: load.rate),
        beside_name="bare server",
        ratio=ratio,
        verdict=at_least(_PROMISED_SHARE, ratio, f"{_PROMISED_SHARE:.0%}") if is_promised else None,
        foreign_cores=foreign(ours, bares),
        extra={
            "p99_ms": median_of(ours, lambda load: load.p99_ms),
            "cpu_us": median_of(ours, lambda load: load.cpu_us),
        },
    )
