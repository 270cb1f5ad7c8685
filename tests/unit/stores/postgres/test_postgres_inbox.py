"""The inbox in a storm: callers that commit or change their minds, promoters that lose their sessions, shared keys."""

import asyncio
import random
from collections import Counter

import asyncpg

from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Accepted, CancelAnswer, IdempotencyKey
from coatcheck.stores.postgres import inbox as inbox_module
from coatcheck.stores.postgres.store import PostgresStore
from harness.postgres_server import shared_server
from harness.postgres_work import POLICIES, TENANT, accept, claim, clock, opened, submission

CALLERS = 6
JOBS_EACH = 15
KEYS = 8
END_A_PROMOTER = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%FOR UPDATE SKIP LOCKED%' LIMIT 1
"""


class Storm:
    """What happens at once, and what is known of it afterwards."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.dsn = dsn
        self.chance = random.Random(seed)  # noqa: S311 - a seed, not a secret
        self.kept: dict[str, str | None] = {}
        self.dropped: list[str] = []
        self.cancelled: set[str] = set()
        self.is_over = asyncio.Event()

    async def call(self, store: PostgresStore) -> None:
        """A caller with a connection of its own, which hands in one job or two in each transaction."""
        connection = await asyncpg.connect(self.dsn)
        for _ in range(JOBS_EACH):
            transaction = connection.transaction()
            await transaction.start()
            made = [key for _ in range(self.chance.choice((1, 2))) if (key := await self._hand_in(store, connection))]
            if self.chance.random() < 0.7:
                await transaction.commit()
                self.kept.update(made)
                for job_id, _ in made:
                    assert isinstance(await store.find_job(TENANT, job_id, clock.now()), JobRecord)
                if made and self.chance.random() < 0.2:
                    await self._cancel(store, made[0][0])
            else:
                await transaction.rollback()
                self.dropped += [job_id for job_id, _ in made]
        await connection.close()

    async def post(self, store: PostgresStore) -> None:
        """A client whose work comes by HTTP, under the same keys."""
        for _ in range(JOBS_EACH):
            key = self._key()
            answer = await store.accept_job(submission(key=key))
            if isinstance(answer, Accepted):
                self.kept[answer.job.id] = key.key
            await asyncio.sleep(0)

    async def promote(self, store: PostgresStore) -> None:
        """A promoter, which may lose its session at any time."""
        while not self.is_over.is_set():
            try:
                await store.promote_inbox(POLICIES, ANY_TERMS, clock.now(), 7)
            except StoreUnavailable:
                await asyncio.sleep(0)

    async def end_sessions(self) -> None:
        """Ends sessions that are just promoting."""
        while not self.is_over.is_set():
            await shared_server().execute(END_A_PROMOTER, self.dsn)

    async def _hand_in(
        self, store: PostgresStore, connection: "asyncpg.Connection[asyncpg.Record]"
    ) -> tuple[str, str | None] | None:
        key = self._key() if self.chance.random() < 0.5 else None
        answer = await store.hand_in(connection, submission(key=key))
        return (answer.job.id, None if key is None else key.key) if isinstance(answer, Accepted) else None

    async def _cancel(self, store: PostgresStore, job_id: str) -> None:
        answer = await store.cancel_job(TENANT, job_id, None, POLICIES, clock.now())
        assert isinstance(answer, CancelAnswer)
        if answer.job.status is Status.CANCELLED:
            self.cancelled.add(job_id)

    def _key(self) -> IdempotencyKey:
        name = f"key-{self.chance.randrange(KEYS)}"
        return IdempotencyKey(name, "sha256-canonical-1", "f" * 64, clock.now() + 60_000)


async def test_a_storm_loses_no_job_and_makes_none() -> None:
    dsn = await shared_server().new_database()
    storm = Storm(dsn, seed=20)
    async with opened(dsn) as front, opened(dsn) as one, opened(dsn) as other:
        promoters = [asyncio.create_task(storm.promote(store)) for store in (one, other)]
        ending = asyncio.create_task(storm.end_sessions())
        await asyncio.gather(*(storm.call(front) for _ in range(CALLERS)), storm.post(front))
        storm.is_over.set()
        await asyncio.gather(*promoters, ending)
        while await front.promote_inbox(POLICIES, ANY_TERMS, clock.now(), 500):
            pass
        found = {job_id: await front.find_job(TENANT, job_id, clock.now()) for job_id in storm.kept}
        states = {job_id: job.status for job_id, job in found.items() if isinstance(job, JobRecord)}
        assert set(states) == set(storm.kept)
        assert [await front.find_job(TENANT, job_id, clock.now()) for job_id in storm.dropped] == [None] * len(
            storm.dropped
        )
        assert {job_id for job_id, status in states.items() if status is Status.CANCELLED} == storm.cancelled
        refused = {job_id for job_id, status in states.items() if status is Status.FAILED}
        owners = Counter(key for job_id, key in storm.kept.items() if key is not None and job_id not in refused)
        assert set(owners.values()) <= {1}
        claimed = Counter(item.job.id for item in await claim(front, 250))
        assert claimed == Counter(set(states) - refused - storm.cancelled)


async def test_large_payloads_are_moved_a_few_at_a_time() -> None:
    dsn = await shared_server().new_database()
    connection = await asyncpg.connect(dsn)
    payload = b'"' + b"x" * (inbox_module.PAYLOAD_BYTES_AT_ONCE // 2) + b'"'
    async with opened(dsn) as store:
        await accept(store)
        async with connection.transaction():
            for _ in range(4):
                await store.hand_in(connection, submission(payload=payload))
        counts = [await store.promote_inbox(POLICIES, ANY_TERMS, clock.now(), 500) for _ in range(3)]
    await connection.close()
    assert counts == [2, 2, 0]
