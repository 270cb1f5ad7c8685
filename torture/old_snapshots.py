"""Somebody's transaction held open, idle and with a snapshot, while work goes on: no dead row can be cleared away.

Every claim then has to step over all rows that were claimed since. Work comes at a steady pace; what is measured is the
time of a whole turn (claim, end, accept) before the transaction began, and at its end.
"""

import asyncio
from collections.abc import Sequence
from statistics import median

import asyncpg

from harness.postgres_server import PostgresServer
from harness.postgres_work import opened
from torture.outcome import Outcome, Task
from torture.postgres_turns import JOBS_EACH_TURN, Turn, make_waiting, work

MEASURED_PART = 1 / 6
SHARE_MIN = 1 / 3
"""Of the rate that was possible before, what must be possible after the snapshot was held for the whole time."""

_TAKE_SNAPSHOT = "SELECT count(*) FROM coatcheck.job"


def run(task: Task) -> Outcome:
    """`task.amount` seconds with the snapshot held, and a part of that before."""
    server = PostgresServer()
    try:
        server.start()
        turns_before, turns = asyncio.run(_torture(server, task))
    finally:
        server.remove()
    last = [turn for turn in turns if turn.began_s >= turns[-1].began_s - task.amount * MEASURED_PART]
    share = _seconds(turns_before) / _seconds(last)
    outcome = Outcome(
        {
            "seconds": task.amount,
            "jobs": len(turns) * JOBS_EACH_TURN,
            "claim of 100 before": _words(turns_before),
            "claim of 100 at the end": _words(last),
            "possible before": f"{JOBS_EACH_TURN / _seconds(turns_before):,.0f} jobs/s",
            "possible at the end": f"{JOBS_EACH_TURN / _seconds(last):,.0f} jobs/s ({share:.0%})",
        }
    )
    if share < SHARE_MIN:
        outcome.faults.append(f"only {share:.0%} of the rate is left, and {SHARE_MIN:.0%} must be")
    return outcome


async def _torture(server: PostgresServer, task: Task) -> tuple[list[Turn], list[Turn]]:
    dsn = await server.new_database()
    async with opened(dsn) as store:
        await make_waiting(store)
        before = await work(store, task.amount * MEASURED_PART)
        stranger = await asyncpg.connect(dsn)
        async with stranger.transaction(isolation="repeatable_read"):
            await stranger.fetch(_TAKE_SNAPSHOT)
            during = []
            for _ in range(task.amount):
                during += await work(store, 1.0)
                task.advance(1)
        await stranger.close()
    return before, during


def _seconds(turns: Sequence[Turn]) -> float:
    return median(turn.whole_s for turn in turns)


def _words(turns: Sequence[Turn]) -> str:
    return f"{median(turn.claim_s for turn in turns) * 1000:.1f} ms"
