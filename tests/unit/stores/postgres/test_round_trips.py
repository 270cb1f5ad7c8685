"""What each verb asks of the server, however many callers meet. On a network, round trips are what a verb costs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from coatcheck.core.quotas import ALL, EACH, Limit, LimitBook, LimitName
from coatcheck.core.tenancy import Controls, TenantControl
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.records import Beat, ClaimRequest, IdempotencyKey
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.testing.conformance.start_limits import CROWD
from coatcheck.testing.conformance.world import BROKEN
from harness.postgres_server import shared_server
from harness.postgres_work import OPERATION, POLICIES, TENANT, accept, claim, clock, finishing, opened, submission

FRAME = 2
"""BEGIN and COMMIT."""


class Meter:
    """Counts what goes to the server."""

    def __init__(self) -> None:
        self._queries = 0

    def counted(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same method of a connection, with an eye on it."""

        def ask(connection: object, query: str, *values: Any, **named: Any) -> Awaitable[Any]:
            self._queries += 1
            return method(connection, query, *values, **named)

        return ask

    def take(self) -> int:
        """How many since the last time."""
        count, self._queries = self._queries, 0
        return count


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter()
    for name in ("fetch", "execute"):
        monkeypatch.setattr(asyncpg.Connection, name, meter.counted(getattr(asyncpg.Connection, name)))
    return meter


@pytest.fixture
async def dsn() -> str:
    return await shared_server().new_database()


@pytest.fixture
async def store(dsn: str, meter: Meter) -> AsyncIterator[PostgresStore]:
    async with opened(dsn, connections=1, listen_dsn=None) as store:
        await accept(store)
        # From now on the one connection is there.
        await claim(store)
        await store.turns_kept()
        meter.take()
        yield store


async def test_a_batch_of_acceptances_is_one_round_trip(store: PostgresStore, meter: Meter) -> None:
    await accept(store)
    assert meter.take() == 1
    await asyncio.gather(*(store.accept_job(submission()) for _ in range(100)))
    assert meter.take() == 1


async def test_a_claim_is_two_and_its_turns_one_more(store: PostgresStore, meter: Meter) -> None:
    await asyncio.gather(*(store.accept_job(submission()) for _ in range(30)))
    meter.take()
    assert len(await claim(store, 20)) == 20
    await store.turns_kept()
    assert meter.take() == FRAME + 2 + 1


async def test_a_claim_that_finds_nothing_is_one(store: PostgresStore, meter: Meter) -> None:
    assert await claim(store) == []
    assert meter.take() == FRAME + 1


async def test_a_batch_of_successes_is_one_and_so_is_one_of_heartbeats(store: PostgresStore, meter: Meter) -> None:
    await asyncio.gather(*(store.accept_job(submission()) for _ in range(30)))
    claims = await claim(store, 30)
    await store.turns_kept()
    meter.take()
    await store.extend_leases([Beat(item.lease) for item in claims], clock.now())
    assert meter.take() == FRAME + 1
    await asyncio.gather(*(store.finish_attempt(finishing(item), clock.now()) for item in claims))
    assert meter.take() == FRAME + 1


async def test_other_endings_are_two(store: PostgresStore, meter: Meter) -> None:
    await asyncio.gather(*(store.accept_job(submission()) for _ in range(30)))
    claims = await claim(store, 30)
    await store.turns_kept()
    meter.take()
    endings = [structs.replace(finishing(item), outcome=BROKEN) for item in claims]
    await asyncio.gather(*(store.finish_attempt(ending, clock.now()) for ending in endings))
    assert meter.take() == FRAME + 2


async def test_limits_cost_round_trips_only_where_they_hold(store: PostgresStore, meter: Meter) -> None:
    limit = Limit((LimitName.QUEUED, EACH, ALL), 100)
    batch = [submission(limits=(limit,)) for _ in range(30)]
    await store.accept_job(batch.pop())
    meter.take()
    await asyncio.gather(*map(store.accept_job, batch))
    assert meter.take() == FRAME + 3
    terms = Terms(book=LimitBook({(LimitName.RUNNING, EACH, ALL): 3}))
    request = ClaimRequest("w", 2, {OPERATION: 2}, POLICIES.by_operation, terms)
    claims = (await store.claim_ready(request, clock.now())).claims
    assert len(claims) == 2
    await store.turns_kept()
    assert meter.take() == FRAME + 2 + 2 + 1
    await store.finish_attempt(structs.replace(finishing(claims[0]), is_limited=True), clock.now())
    assert meter.take() == FRAME + 1 + 1


async def test_turns_that_are_held_cost_a_claim_nothing(store: PostgresStore, meter: Meter) -> None:
    crowd = [f"held-{n:04}" for n in range(CROWD)]
    await asyncio.gather(*(store.accept_job(submission(tenant=tenant)) for tenant in crowd))
    terms = Terms(Controls(tenants={tenant: TenantControl(tenant, is_paused=True) for tenant in crowd}))
    request = ClaimRequest("w", 1, {OPERATION: 1}, POLICIES.by_operation, terms)
    looks = 0
    while (await store.claim_ready(request, clock.now())).is_crowded:
        looks += 1
    assert looks <= 3
    await asyncio.gather(*(store.accept_job(submission()) for _ in range(3)))
    meter.take()
    assert len((await store.claim_ready(request, clock.now())).claims) == 1
    await store.turns_kept()
    assert meter.take() == FRAME + 2 + 1


async def test_reads_that_meet_are_one(store: PostgresStore, meter: Meter) -> None:
    ids = await asyncio.gather(*(accept(store) for _ in range(50)))
    meter.take()
    await asyncio.gather(*(store.find_job(TENANT, job_id, clock.now()) for job_id in ids))
    assert meter.take() == 1


async def test_handing_in_is_one_insert_elsewhere_and_two_reads_here_where_there_is_a_key(
    store: PostgresStore, dsn: str, meter: Meter
) -> None:
    caller = await asyncpg.connect(dsn)
    key = IdempotencyKey("order-7", "sha256-canonical-1", "f" * 64, clock.now() + 60_000)
    async with caller.transaction():
        meter.take()
        await store.hand_in(caller, submission())
        assert meter.take() == 1
        await store.hand_in(caller, submission(key=key))
        assert meter.take() == 1 + FRAME + 2
    await caller.close()
    meter.take()
    assert await store.promote_inbox(POLICIES, ANY_TERMS, clock.now(), 100) == 2
    assert meter.take() == 1 + FRAME + 2


async def test_a_sweep_with_nothing_to_do_is_cheap(store: PostgresStore, meter: Meter) -> None:
    assert await store.rescue_leases(POLICIES, clock.now(), 100) == 0
    assert meter.take() == 1
    assert await store.promote_inbox(POLICIES, ANY_TERMS, clock.now(), 100) == 0
    assert meter.take() == 1
    assert await store.expire_overdue(POLICIES, clock.now(), 100) == 0
    assert meter.take() == FRAME + 2
