"""Behind a pooler that lends a session for one transaction."""

import asyncio

import pytest

from coatcheck.core.states import Status
from coatcheck.store.records import JobQuery, WakeUp, WakeUpKind
from coatcheck.testing.waiting import wait_until_async
from harness.pgbouncer import PROGRAM, bouncing
from harness.postgres_pooler import pooled
from harness.postgres_server import database_of, shared_server
from harness.postgres_work import POLICIES, TENANT, accept, claim, clock, finishing, opened, submission


@pytest.mark.parametrize("sessions", [1, 3])
async def test_bb_101_a_job_lives_its_whole_life_behind_a_pooler(sessions: int) -> None:
    dsn = await shared_server().new_database()
    async with pooled(shared_server().folder, database_of(dsn), sessions) as pooler:
        await _live_through(pooler.dsn)
        assert pooler.lent > 20


@pytest.mark.skipif(PROGRAM is None, reason="this machine has no PgBouncer")
@pytest.mark.parametrize("sessions", [1, 3])
async def test_and_behind_pgbouncer_itself(sessions: int) -> None:
    dsn = await shared_server().new_database()
    async with bouncing(shared_server().folder, database_of(dsn), sessions) as pooled_dsn:
        await _live_through(pooled_dsn)


async def _live_through(dsn: str) -> None:
    """Two processes, each handing in, claiming and finishing."""
    async with (
        opened(dsn, is_pooled=True, listen_dsn=None, events=True) as one,
        opened(dsn, is_pooled=True, listen_dsn=None, events=True) as other,
    ):
        ids = await asyncio.gather(*(accept((one, other)[n % 2]) for n in range(60)))
        claims = [*await claim(one, 30), *await claim(other, 30)]
        assert {item.job.id for item in claims} == set(ids)
        await asyncio.gather(
            *((one, other)[n % 2].finish_attempt(finishing(c), clock.now()) for n, c in enumerate(claims))
        )
        page = await other.list_jobs(JobQuery(TENANT, 100), clock.now())
        assert {job.status for job in page.jobs} == {Status.SUCCEEDED}
        assert await one.expire_overdue(POLICIES, clock.now(), 10) == 0
        assert len(await one.read_outbox(500)) == 180
        assert await other.read_outbox(500) == ()


async def test_hints_go_past_the_pooler() -> None:
    dsn = await shared_server().new_database()
    async with (
        pooled(shared_server().folder, database_of(dsn)) as pooler,
        opened(pooler.dsn, is_pooled=True, listen_dsn=dsn) as one,
        opened(pooler.dsn, is_pooled=True, listen_dsn=dsn) as other,
    ):
        heard: list[WakeUp] = []
        other.listen(heard.append)
        await accept(one)
        await wait_until_async(lambda: WakeUp(WakeUpKind.READY) in heard, "a hint")


async def test_who_does_not_say_that_there_is_a_pooler_finds_statements_gone() -> None:
    """The test's own pooler is one."""
    dsn = await shared_server().new_database()
    async with opened(dsn):
        pass
    async with (
        pooled(shared_server().folder, database_of(dsn)) as pooler,
        opened(pooler.dsn, listen_dsn=None) as store,
    ):
        jobs = [submission() for _ in range(10)]
        answers = [await asyncio.gather(store.accept_job(job), return_exceptions=True) for job in jobs]
        assert any(isinstance(answer, Exception) for (answer,) in answers)
