"""Work on PostgreSQL at a steady pace: claim some jobs, end them, accept as many."""

import asyncio
from dataclasses import dataclass

from coatcheck.store.clock import SystemClock
from coatcheck.stores.postgres.store import PostgresStore
from harness.postgres_work import accept, claim, clock, finishing

JOBS_EACH_TURN = 100
JOBS_PER_S = 300
WAITING = 1_000

CLOCK = SystemClock()


@dataclass(frozen=True)
class Turn:
    """When it began, how long its claim took, and all of it."""

    began_s: float
    claim_s: float
    whole_s: float


async def make_waiting(store: PostgresStore) -> None:
    """Accept the jobs that wait all the time."""
    await asyncio.gather(*(accept(store) for _ in range(WAITING)))


async def work(store: PostgresStore, seconds: float) -> list[Turn]:
    """Turns at a steady pace; as many as there is time for where it cannot be kept."""
    ends_at_s = CLOCK.monotonic_s() + seconds
    turns = []
    while CLOCK.monotonic_s() < ends_at_s:
        turn = await _turn(store)
        turns.append(turn)
        await asyncio.sleep(max(0.0, JOBS_EACH_TURN / JOBS_PER_S - turn.whole_s))
    return turns


async def _turn(store: PostgresStore) -> Turn:
    began_s = CLOCK.monotonic_s()
    claims = await claim(store, JOBS_EACH_TURN)
    claim_s = CLOCK.monotonic_s() - began_s
    assert len(claims) == JOBS_EACH_TURN, f"{len(claims)} jobs were claimed, and more were waiting"
    await asyncio.gather(*(store.finish_attempt(finishing(each), clock.now()) for each in claims))
    await asyncio.gather(*(accept(store) for _ in claims))
    return Turn(began_s, claim_s, CLOCK.monotonic_s() - began_s)
