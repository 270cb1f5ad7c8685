"""Depth on PostgreSQL: how much slower accepting and working are when the database is full of jobs."""

import asyncio
import time
from collections.abc import Sequence
from statistics import median

import asyncpg

from benchmarks.accept import post
from benchmarks.load import Load, drive
from benchmarks.postgres import EVENTS, Database, database
from benchmarks.programs import BenchFailed
from benchmarks.rows import PROMISED_SHARE_IN_DEPTH, Plan, Row, at_least, depth_accept_row, foreign
from benchmarks.seeding import Seed, batches, make_templates, new_key, values_of

_FINISHED_FOR_EACH_QUEUED = 5
_FEW_JOBS = 60_000
_WARM_S = 2.0
# As docs/operate/postgres.md advises for millions of jobs.
_SETTINGS = ("max_wal_size=8GB", "wal_compression=on")
_TABLES = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attidentity = ''
WHERE c.relnamespace = 'coatcheck'::regnamespace AND c.relkind = 'r'
GROUP BY c.relname
HAVING c.relname = 'job' OR 'job_id' = ANY (array_agg(a.attname))
"""
_ENDED = "SELECT count(*), max(finished_at) FROM coatcheck.attempt WHERE finished_at BETWEEN $1 AND $2"


def measure(plan: Plan) -> list[Row]:
    """Rows for accepting and working, each beside a database with next to nothing in it."""
    finished = plan.depth * _FINISHED_FOR_EACH_QUEUED
    plan.tell(f"depth on PostgreSQL: making {plan.depth:,} queued and {finished:,} finished jobs")
    accepts: dict[str, list[Load]] = {"full": [], "empty": []}
    works: dict[str, list[float]] = {"full": [], "few": []}
    with database("postgres-full", _SETTINGS) as full, database("postgres-empty", _SETTINGS) as empty:
        asyncio.run(_fill(full, Seed(queued=plan.depth, finished=finished)))
        asyncio.run(_fill(empty, Seed()))
        for number in range(plan.rounds):
            plan.tell(f"depth on PostgreSQL: round {number + 1} of {plan.rounds}")
            for name, where in (("empty", empty), ("full", full)):
                accepts[name].append(_accept(where, plan.seconds))
            with database("postgres-few", _SETTINGS) as few:
                asyncio.run(_fill(few, Seed(queued=_FEW_JOBS)))
                works["few"].append(_work(few, plan.seconds))
            works["full"].append(_work(full, plan.seconds))
    section = f"on PostgreSQL with {plan.depth:,} queued and {finished:,} finished jobs"
    accept_row = depth_accept_row(section, accepts["full"], accepts["empty"], "empty database")
    return [accept_row, _work_row(section, works, foreign(*accepts.values()))]


def _accept(where: Database, seconds: float) -> Load:
    with where.serve("--roles", "api", *EVENTS) as serving:
        return drive(post(serving, "key"), seconds)


def _work(where: Database, seconds: float) -> float:
    """Jobs a second that one worker with one runner finished."""
    with where.serve("--roles", "worker,upkeep") as serving:
        time.sleep(_WARM_S)
        began_ms = time.time_ns() // 1_000_000
        time.sleep(seconds)
        ended_ms = time.time_ns() // 1_000_000
        serving.program.kill()
    count, last_ms = asyncio.run(_ended(where, began_ms, ended_ms))
    if not count:
        raise BenchFailed("No job was finished.")
    return count / (last_ms - began_ms) * 1000


async def _ended(where: Database, began_ms: int, ended_ms: int) -> tuple[int, int]:
    connection = await asyncpg.connect(where.url)
    try:
        ((count, last_ms),) = await connection.fetch(_ENDED, began_ms, ended_ms)
        return count, last_ms
    finally:
        await connection.close()


async def _fill(where: Database, seed: Seed) -> None:
    """Copies of two jobs of the product's own making, as on SQLite."""
    finished_id, queued_id = await asyncio.to_thread(make_templates, where.serve)
    connection = await asyncpg.connect(where.url)
    try:
        await connection.execute("SET synchronous_commit = off; SET search_path = coatcheck")
        await connection.execute("CREATE TEMP TABLE copied (id text PRIMARY KEY, key text)")
        tables = {name: list(columns) for name, columns in await connection.fetch(_TABLES)}
        for template, new_ids in batches(seed, finished_id, queued_id):
            await _copy(connection, tables, template, new_ids)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def _copy(
    connection: "asyncpg.Connection[asyncpg.Record]",
    tables: dict[str, list[str]],
    template: str,
    new_ids: Sequence[str],
) -> None:
    async with connection.transaction():
        await connection.execute("TRUNCATE copied")
        await connection.copy_records_to_table("copied", records=[(new, new_key(new)) for new in new_ids])
        for table, columns in tables.items():
            owner = "id" if table == "job" else "job_id"
            await connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values_of(columns))}"  # noqa: S608 - names of our own schema
                f" FROM {table} AS t, copied AS c WHERE t.{owner} = $1",
                template,
            )


def _work_row(section: str, works: dict[str, list[float]], others: float) -> Row:
    ratio = median(full / few for full, few in zip(works["full"], works["few"], strict=True))
    return Row(
        section,
        "claim, run and finish",
        median(works["full"]),
        "jobs/s",
        works["full"],
        beside=median(works["few"]),
        beside_name=f"{_FEW_JOBS:,} jobs, no history",
        ratio=ratio,
        verdict=at_least(PROMISED_SHARE_IN_DEPTH, ratio, f"{PROMISED_SHARE_IN_DEPTH:.0%}"),
        foreign_cores=others,
    )
