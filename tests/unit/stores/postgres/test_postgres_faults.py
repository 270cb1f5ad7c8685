"""A database that goes away: every verb says so, nothing that was answered is lost, and all is well when it is back."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from coatcheck.core.costs import DEFAULT_WINDOW_S, window_of
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS
from coatcheck.store.errors import StoreError, StoreUnavailable
from coatcheck.store.records import (
    Accepted,
    Beat,
    IdempotencyKey,
    JobQuery,
    Prunable,
    Redriving,
    Replayed,
    Spending,
)
from coatcheck.stores.postgres import transaction as transaction_module
from coatcheck.stores.postgres.connection import Connection
from coatcheck.stores.postgres.statements import sql
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until_async
from harness.postgres_server import PostgresServer, database_of, shared_server
from harness.postgres_work import POLICIES, TENANT, accept, claim, clock, finishing, opened, submission

END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

RUN_OUT = "SELECT 1 FROM coatcheck.lease WHERE ends_at < extract(epoch FROM clock_timestamp()) * 1000"


@pytest.fixture
async def dsn() -> str:
    return await shared_server().new_database()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that only these tests stop."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


async def verbs(store: PostgresStore) -> dict[str, Callable[[], Awaitable[object]]]:
    """Every verb, on a job that runs."""
    await accept(store)
    (running,) = await claim(store)
    job_id, lease, now = running.job.id, running.lease, clock.now()
    return {
        "accept_job": lambda: store.accept_job(submission()),
        "find_earlier": lambda: store.find_earlier(submission(key=IdempotencyKey("k", "a", "f", now + 1_000))),
        "claim_ready": lambda: claim(store),
        "extend_leases": lambda: store.extend_leases([Beat(lease)], now),
        "finish_attempt": lambda: store.finish_attempt(finishing(running), now),
        "record_effect": lambda: store.record_effect(lease, "mail", b"", now),
        "find_effect": lambda: store.find_effect(lease, "mail"),
        "spend": lambda: store.spend(Spending(lease, 1, "calls", 1, window_of(now, DEFAULT_WINDOW_S))),
        "list_spending": lambda: store.list_spending(TENANT, 5),
        "list_job_costs": lambda: store.list_job_costs(job_id),
        "find_job": lambda: store.find_job(TENANT, job_id, now),
        "read_result": lambda: store.read_result(TENANT, job_id, now),
        "list_jobs": lambda: store.list_jobs(JobQuery(TENANT, 5), now),
        "list_attempts": lambda: store.list_attempts(TENANT, job_id),
        "measure_queues": lambda: store.measure_queues(now),
        "count_ahead": lambda: store.count_ahead(running.job, 5),
        "check_health": store.check_health,
        "cancel_job": lambda: store.cancel_job(TENANT, job_id, None, POLICIES, now),
        "erase_job": lambda: store.erase_job(TENANT, job_id, now),
        "redrive_job": lambda: store.redrive_job(Redriving(TENANT, job_id, submission().job_id, now)),
        "read_outbox": lambda: store.read_outbox(5),
        "remove_relayed": lambda: store.remove_relayed([1]),
        "promote_due": lambda: store.promote_due(now, 5),
        "promote_inbox": lambda: store.promote_inbox(POLICIES, ANY_TERMS, now, 5),
        "rescue_leases": lambda: store.rescue_leases(POLICIES, now, 5),
        "expire_overdue": lambda: store.expire_overdue(POLICIES, now, 5),
        "prune_expired": lambda: store.prune_expired(Prunable.JOBS, now, 5),
    }


async def test_without_a_server_every_verb_says_so_and_with_one_every_verb_goes_on(own_server: PostgresServer) -> None:
    async with opened(await own_server.new_database()) as store:
        asked = await verbs(store)
        own_server.stop()
        answers = [await asyncio.gather(verb(), return_exceptions=True) for verb in asked.values()]
        answered = [
            name for name, answer in zip(asked, answers, strict=True) if type(answer[0]) is not StoreUnavailable
        ]
        assert answered == []
        own_server.start()
        for name, verb in asked.items():
            try:
                await verb()
            except StoreUnavailable as error:
                pytest.fail(f"{name} did not recover: {error}")
            except StoreError:
                pass


async def test_what_was_answered_survives_a_crash(own_server: PostgresServer) -> None:
    dsn = await own_server.new_database()
    async with opened(dsn) as store:
        accepted: list[str] = []

        async def hand_in() -> None:
            while True:
                try:
                    accepted.append(await accept(store))
                except StoreUnavailable:
                    return

        clients = [asyncio.create_task(hand_in()) for _ in range(8)]
        await wait_until_async(lambda: len(accepted) > 300, "some acceptances")
        own_server.stop("immediate")
        await asyncio.gather(*clients)
        own_server.start()
        assert [job_id for job_id in accepted if await store.find_job(TENANT, job_id, clock.now()) is None] == []


@pytest.mark.parametrize("moment", ["result-stored-before-commit", "before-commit"])
async def test_a_session_that_is_ended_in_the_middle_of_a_transaction_writes_nothing(dsn: str, moment: str) -> None:
    faults = FaultPoints()
    async with opened(dsn, faults) as store:
        await accept(store)
        (running,) = await claim(store)
        faults.call_at(moment, lambda: _end_sessions(dsn), faults.count(moment) + 1)
        with pytest.raises(StoreUnavailable):
            await store.finish_attempt(finishing(running), clock.now())
        found = await store.find_job(TENANT, running.job.id, clock.now())
        assert getattr(found, "status", None) is Status.RUNNING
        assert (await store.finish_attempt(finishing(running), clock.now())).job.status is Status.SUCCEEDED


async def test_a_rescue_that_is_cut_off_strands_nothing_and_is_done_a_lease_time_later(dsn: str) -> None:
    faults = FaultPoints()
    async with opened(dsn, faults, lease_s=0.3) as store:
        ids = [await accept(store) for _ in range(3)]
        await claim(store, 3)
        faults.call_at("reap-updated", lambda: _end_sessions(dsn), 2)

        async def have_run_out() -> bool:
            # Each at an instant of its own: a rescue in between would find only the first.
            return len(await shared_server().execute(RUN_OUT, dsn)) == len(ids)

        await wait_until_async(have_run_out, "all leases to run out")

        async def is_cut_off() -> bool:
            try:
                return await store.rescue_leases(POLICIES, clock.now(), 10) > 0
            except StoreUnavailable:
                return True

        await wait_until_async(is_cut_off, "the leases to be rescued")
        assert faults.count("reap-updated") >= 2
        assert await store.rescue_leases(POLICIES, clock.now(), 10) == 0
        rescued = 0

        async def are_rescued() -> bool:
            nonlocal rescued
            rescued += await store.rescue_leases(POLICIES, clock.now(), 10)
            return rescued == 3

        await wait_until_async(are_rescued, "the leases to be rescued")
        jobs = [await store.find_job(TENANT, job_id, clock.now()) for job_id in ids]
        assert [getattr(job, "status", None) for job in jobs] == [Status.QUEUED] * 3


async def test_a_commit_whose_answer_was_lost_is_found_again_by_its_key(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = IdempotencyKey("retry-1", "sha256", "f" * 64, clock.now() + 60_000)
    async with opened(dsn) as store:
        lost = submission(key=key)
        with monkeypatch.context() as patch:
            patch.setattr(transaction_module, "fetch", _fetch_and_lose)
            with pytest.raises(StoreUnavailable):
                await store.accept_job(lost)
        replay = await store.accept_job(submission(key=key))
        assert isinstance(replay, Replayed)
        assert replay.job.id == lost.job_id


async def test_a_server_that_takes_no_connection_is_unavailable_until_it_does(dsn: str) -> None:
    async with opened(dsn, listen_dsn=None, connections=2) as store:
        await shared_server().execute(f"ALTER DATABASE {database_of(dsn)} ALLOW_CONNECTIONS false")
        with pytest.raises(StoreUnavailable):
            await store.accept_job(submission())
        await shared_server().execute(f"ALTER DATABASE {database_of(dsn)} ALLOW_CONNECTIONS true")
        assert isinstance(await store.accept_job(submission()), Accepted)


async def test_a_server_that_turned_read_only_is_unavailable_and_unwell(dsn: str) -> None:
    name = database_of(dsn)
    async with opened(dsn) as store:
        job_id = await accept(store)
        await shared_server().execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await shared_server().execute(END_OTHERS, dsn)
        with pytest.raises(StoreUnavailable):
            await accept(store)
        with pytest.raises(StoreUnavailable, match="can only be read"):
            await store.check_health()
        assert await store.find_job(TENANT, job_id, clock.now()) is not None
        await shared_server().execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await shared_server().execute(END_OTHERS, dsn)
        await wait_until_async(lambda: _can_accept(store), "writes to be possible again")
        await store.check_health()


async def test_one_connection_is_enough_for_everything(dsn: str) -> None:
    async with opened(dsn, connections=1, listen_dsn=None) as store:
        ids = await asyncio.gather(*(accept(store) for _ in range(50)))
        reads = asyncio.gather(*(store.find_job(TENANT, job_id, clock.now()) for job_id in ids))
        claims = await claim(store, 50)
        assert all(await reads)
        await asyncio.gather(*(store.finish_attempt(finishing(one), clock.now()) for one in claims))
        assert [measure.ready for measure in await store.measure_queues(clock.now())] == [0]


def _end_sessions(dsn: str) -> None:
    """End every session of a database, before the event loop goes on."""
    thread = threading.Thread(target=asyncio.run, args=(shared_server().execute(END_OTHERS, dsn),))
    thread.start()
    thread.join()


async def _fetch_and_lose(connection: Connection, statement: str, *values: Any) -> None:
    """The statement is done, and the connection breaks before its answer comes."""
    await connection.fetch(sql(statement), *values)
    connection.terminate()
    raise ConnectionResetError("Connection reset by peer")


async def _can_accept(store: PostgresStore) -> bool:
    try:
        await accept(store)
    except StoreUnavailable:
        return False
    return True
