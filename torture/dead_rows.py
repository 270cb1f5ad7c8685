"""Ten minutes of steady work: what it leaves dead in the hot tables must be cleared away as fast as it comes.

The tables hold a thousand jobs all the time, while 300 a second come, start and end. A table that is never cleared
grows with every one of them; one that is keeps to what comes between two rounds of autovacuum.
"""

import asyncio
from collections.abc import Mapping, Sequence

from harness.postgres_server import PostgresServer
from harness.postgres_work import opened
from torture.outcome import Outcome, Task
from torture.postgres_turns import CLOCK, JOBS_EACH_TURN, Turn, make_waiting, work

LOOK_EVERY_S = 10.0
JUDGED_FROM_S = 300
"""Autovacuum comes once a minute: less tells nothing."""
GROWTH_MAX = 1.5
"""The most that the hot tables may take up in the second half, by what they took up in the first."""

_HOT = ("ready", "scheduled", "lease", "turn", "outbox", "deadline")
_LOOK = """
SELECT relname, n_dead_tup, pg_total_relation_size(relid)
FROM pg_stat_user_tables WHERE schemaname = 'coatcheck' AND relname = ANY ($1)
"""


def run(task: Task) -> Outcome:
    """`task.amount` seconds of work."""
    server = PostgresServer()
    try:
        server.start()
        turns, looks = asyncio.run(_torture(server, task))
    finally:
        server.remove()
    half = len(looks) // 2
    first, second = (
        max(sum(size for _, size in look.values()) for look in part) for part in (looks[:half], looks[half:])
    )
    outcome = Outcome(
        {
            "seconds": task.amount,
            "jobs": len(turns) * JOBS_EACH_TURN,
            "most dead rows": ", ".join(f"{name} {_most_dead(looks, name):,}" for name in ("ready", "lease")),
            "hot tables": f"{first / 2**20:.1f} MiB at most in the first half, {second / 2**20:.1f} in the second",
        }
    )
    if task.amount >= JUDGED_FROM_S and second > first * GROWTH_MAX:
        outcome.faults.append(f"the hot tables grew from {first:,} to {second:,} bytes and go on growing")
    return outcome


async def _torture(server: PostgresServer, task: Task) -> tuple[list[Turn], list[Mapping[str, tuple[int, int]]]]:
    dsn = await server.new_database()
    turns: list[Turn] = []
    looks: list[Mapping[str, tuple[int, int]]] = []
    async with opened(dsn) as store:
        await make_waiting(store)
        look_at_s = CLOCK.monotonic_s()
        for _ in range(task.amount):
            turns += await work(store, 1.0)
            task.advance(1)
            if CLOCK.monotonic_s() >= look_at_s:
                look_at_s += LOOK_EVERY_S
                looks.append({row[0]: (row[1], row[2]) for row in await server.execute(_LOOK, dsn, list(_HOT))})
    return turns, looks


def _most_dead(looks: Sequence[Mapping[str, tuple[int, int]]], name: str) -> int:
    return max(look[name][0] for look in looks)
