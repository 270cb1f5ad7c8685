"""Several processes on one database: claims that do not collide, hints between processes, one relay."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.core.quotas import ALL, EACH, LimitBook, LimitName
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.records import ClaimRequest, WakeUp, WakeUpKind
from coatcheck.stores.postgres import wakeups as wakeups_module
from coatcheck.stores.postgres.connection import connect
from coatcheck.stores.postgres.rows import Row
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.stores.postgres.transaction import Transaction
from coatcheck.testing.waiting import wait_until_async
from harness.postgres_server import shared_server
from harness.postgres_work import OPERATION, POLICIES, TENANT, accept, claim, clock, finishing, opened

WORKER = """
import asyncio, sys
from harness.postgres_work import claim, clock, finishing, opened

async def main():
    async with opened(sys.argv[1]) as store:
        empty = 0
        while empty < 5:
            claims = await claim(store, 3, sys.argv[2])
            empty = 0 if claims else empty + 1
            for one in claims:
                print(one.job.id, flush=True)
                await store.finish_attempt(finishing(one), clock.now())

asyncio.run(main())
"""

EMPTY_TURN = """
INSERT INTO coatcheck.turn VALUES ($1, $2, true, 0.0)
ON CONFLICT (operation, tenant) DO UPDATE SET is_waiting = true
"""


@pytest.fixture
async def dsn() -> str:
    return await shared_server().new_database()


async def test_a_turn_that_gets_work_while_a_claim_looks_is_counted_like_any_other(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim finds it without work, and goes on to look further: what came in meanwhile meets the limit, too."""
    terms = Terms(book=LimitBook({(LimitName.RUNNING, TENANT, ALL): 1}))
    request = ClaimRequest("worker", 1, {OPERATION: 1}, POLICIES.by_operation, terms)
    rows = Transaction.rows
    async with opened(dsn) as store, opened(dsn) as other:
        await accept(store)
        assert len((await store.claim_ready(request, clock.now())).claims) == 1
        await store.turns_kept()
        await shared_server().execute(EMPTY_TURN, dsn, OPERATION, TENANT)
        looks = 0

        async def looking(transaction: Transaction, statement: str, /, *values: Any) -> Sequence[Row]:
            nonlocal looks
            found = await rows(transaction, statement, *values)
            if statement == "next_turns":
                looks += 1
                if looks == 1:
                    assert [row[3] for row in found] == [0]
                    await accept(other)
            return found

        monkeypatch.setattr(Transaction, "rows", looking)
        assert not (await store.claim_ready(request, clock.now())).claims
        assert looks > 1
        (measure,) = await store.measure_queues(clock.now())
        assert (measure.ready, measure.running) == (1, 1)


async def test_processes_that_claim_at_once_start_each_job_once_and_all_get_some(dsn: str) -> None:
    async with opened(dsn) as store:
        ids = await asyncio.gather(*(accept(store) for _ in range(300)))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, dsn, f"worker-{n}"], stdout=subprocess.PIPE, text=True, env=environment
            )
            for n in range(3)
        ]
        outputs = [await asyncio.to_thread(worker.communicate) for worker in workers]
        started = [output[0].split() for output in outputs]
        assert [worker.returncode for worker in workers] == [0, 0, 0]
        assert Counter(job_id for some in started for job_id in some) == Counter(ids)
        (measure,) = await store.measure_queues(clock.now())
        assert (measure.ready, measure.running) == (0, 0)


async def test_claimers_of_one_tenant_do_not_wait_for_each_other(dsn: str) -> None:
    async with opened(dsn) as one, opened(dsn) as other:
        for _ in range(20):
            await accept(one)
        async with one._connections.lend() as holder, holder.transaction():
            await holder.fetch("SELECT * FROM turn FOR NO KEY UPDATE")
            first = await holder.fetchval("SELECT job_id FROM ready ORDER BY job_id LIMIT 1 FOR UPDATE")
            waiting = asyncio.create_task(claim(other, 5))
            await wait_until_async(lambda: _leases(one, 5), "five leases")
        claims = await waiting
        assert len(claims) == 5
        assert first not in {item.job.id for item in claims}


async def _leases(store: PostgresStore, count: int) -> bool:
    measures = await store.measure_queues(clock.now())
    return bool(measures) and measures[0].running == count


async def test_no_job_is_left_behind_when_tenants_come_and_go(dsn: str) -> None:
    """A turn is left by one process in the moment in which another brings its tenant more work."""
    async with opened(dsn) as one, opened(dsn) as other:
        tenants = ["a", "b", "c"]
        done: list[str] = []

        async def hand_in(store: PostgresStore) -> None:
            for _ in range(120):
                await accept(store, tenant=random.choice(tenants))  # noqa: S311 - any will do

        async def work(store: PostgresStore) -> None:
            while len(done) < 240:
                for item in await claim(store, 2):
                    await store.finish_attempt(finishing(item), clock.now())
                    done.append(item.job.id)

        everything = asyncio.gather(hand_in(one), hand_in(other), work(one), work(other), work(one))
        await asyncio.wait_for(everything, 60)
        assert len(set(done)) == 240
        await asyncio.gather(one.turns_kept(), other.turns_kept())
        assert await shared_server().execute("SELECT * FROM coatcheck.turn WHERE is_waiting", dsn) == []


async def test_a_claim_that_counts_what_runs_sees_the_endings_that_came_with_it(dsn: str) -> None:
    async with opened(dsn) as store:
        await asyncio.gather(*(accept(store) for _ in range(4)))
        bounded = {OPERATION: replace(DEFAULT_POLICY, concurrency_max=1)}
        limited = Terms(book=LimitBook({(LimitName.RUNNING, EACH, ALL): 1}))
        for policies, terms in ((bounded, ANY_TERMS), (POLICIES.by_operation, limited)):
            request = ClaimRequest("w", 1, {OPERATION: 1}, policies, terms)
            (running,) = (await store.claim_ready(request, clock.now())).claims
            ending = structs.replace(finishing(running), is_limited=terms is limited)
            _, after = await asyncio.gather(
                store.finish_attempt(ending, clock.now()), store.claim_ready(request, clock.now())
            )
            assert len(after.claims) == 1
            await store.finish_attempt(structs.replace(finishing(after.claims[0]), is_limited=True), clock.now())


async def test_late_jobs_of_many_tenants_hold_up_nobody(dsn: str) -> None:
    async with opened(dsn) as store:
        for n in range(12):
            await accept(store, tenant=f"a{n}", deadline_at=clock.now() - 1)
        job_id = await accept(store, tenant="z")
        assert [item.job.id for item in await claim(store)] == [job_id]
        await store.turns_kept()
        assert await shared_server().execute("SELECT * FROM coatcheck.turn", dsn) == []


async def test_turns_that_a_crash_left_behind_hold_up_nobody_and_are_taken_away(dsn: str) -> None:
    async with opened(dsn) as store:
        stale = "INSERT INTO coatcheck.turn SELECT 'reports', 'a' || n, true, -1 FROM generate_series(1, 12) AS n"
        await shared_server().execute(stale, dsn)
        ids = [await accept(store, tenant="z") for _ in range(3)]
        assert [item.job.id for item in await claim(store)] == ids[:1]
        await store.turns_kept()
        assert await shared_server().execute("SELECT tenant FROM coatcheck.turn", dsn) == [("z",)]


async def test_a_hint_reaches_the_other_store_once_and_the_own_without_the_server(dsn: str) -> None:
    async with opened(dsn) as one, opened(dsn) as other:
        own: list[WakeUp] = []
        heard: list[WakeUp] = []
        one.listen(own.append)
        other.listen(heard.append)
        await accept(one)
        await wait_until_async(lambda: bool(heard), "a hint")
        await accept(one)
        await wait_until_async(lambda: len(heard) == 2, "another")
        assert own == heard == [WakeUp(WakeUpKind.READY)] * 2


async def test_without_a_session_of_its_own_a_store_hears_only_itself(dsn: str) -> None:
    async with opened(dsn, listen_dsn=None) as one, opened(dsn) as other:
        own: list[WakeUp] = []
        one.listen(own.append)
        await accept(other)
        await accept(one)
        assert own == [WakeUp(WakeUpKind.READY)]
        assert len(await claim(one, 5)) == 2


@pytest.mark.parametrize("how", ["ended", "silent"])
async def test_a_listener_whose_connection_is_lost_listens_again(
    dsn: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups_module, "PROBE_INTERVAL_S", 0.05)
    monkeypatch.setattr(wakeups_module, "PROBE_S_MAX", 0.3)
    async with opened(dsn) as one, opened(dsn) as other:
        heard: list[WakeUp] = []
        one.listen(heard.append)
        lost = one._wakeups._connection
        assert lost is not None
        pid = lost.get_server_pid()
        if how == "ended":
            await shared_server().execute(f"SELECT pg_terminate_backend({pid})")
        else:
            os.kill(pid, signal.SIGSTOP)
        await wait_until_async(lambda: one._wakeups._connection not in (None, lost), "a new connection")
        if how == "silent":
            os.kill(pid, signal.SIGCONT)
        # Whatever was told meanwhile is lost, so everybody is told to look.
        assert {hint.kind for hint in heard} >= {WakeUpKind.READY, WakeUpKind.SCHEDULED, WakeUpKind.OUTBOX}
        heard.clear()
        await accept(other)
        await wait_until_async(lambda: WakeUp(WakeUpKind.READY) in heard, "a hint")


async def test_a_store_that_cannot_listen_works_and_listens_when_it_can(dsn: str) -> None:
    nowhere = shared_server().dsn("not_yet_there")
    async with opened(dsn, listen_dsn=nowhere) as store:
        await accept(store)
        assert store._wakeups._connection is None
        await shared_server().execute("CREATE DATABASE not_yet_there")
        await wait_until_async(lambda: store._wakeups._connection is not None, "a connection to listen on")


async def test_the_relay_s_turn_goes_on_when_its_holder_leaves_or_dies(dsn: str) -> None:
    async with opened(dsn, events=True) as one:
        async with opened(dsn, events=True) as other:
            await accept(one)
            assert len(await other.read_outbox(10)) == 1
            assert await one.read_outbox(10) == ()
        assert len(await one.read_outbox(10)) == 1
        await shared_server().execute(
            "UPDATE coatcheck.relay_turn SET holder = 'dead', ends_at = clock_timestamp()", dsn
        )
        async with opened(dsn, events=True) as other:
            assert len(await other.read_outbox(10)) == 1


async def test_a_deadlock_is_run_again_and_nobody_hears_of_it(dsn: str) -> None:
    async with opened(dsn) as store:
        first, second = sorted([await accept(store), await accept(store)])
        claims = {item.job.id: item for item in await claim(store, 2)}
        async with store._connections.lend() as holder:
            await holder.execute("BEGIN; SET LOCAL deadlock_timeout = '60s'")
            await holder.fetch("SELECT 1 FROM lease WHERE job_id = $1 FOR UPDATE", second)
            both = asyncio.gather(
                *(store.finish_attempt(finishing(claims[one]), clock.now()) for one in (first, second))
            )
            await wait_until_async(lambda: _somebody_waits(dsn), "the finish to wait for the second lease")
            # Now each has what the other wants; the finish is the one that is chosen to give way.
            await holder.fetch("SELECT 1 FROM lease WHERE job_id = $1 FOR UPDATE", first)
            await holder.execute("COMMIT")
        assert {done.job.status.value for done in await both} == {"succeeded"}


async def _somebody_waits(dsn: str) -> bool:
    statement = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(await shared_server().execute(statement, dsn))


async def test_a_tenant_sees_its_own(dsn: str) -> None:
    async with opened(dsn) as store:
        job_id = await accept(store)
        assert await store.find_job("other", job_id, clock.now()) is None
        assert await store.find_job(TENANT, f"{job_id}\0", clock.now()) is None


async def test_a_turn_that_a_stopped_process_holds_costs_nobody_what_it_claimed(dsn: str) -> None:
    lease_s = 4
    async with opened(dsn, lease_s=lease_s) as store, _turns_held(dsn, "NO KEY UPDATE"):
        # Nobody keeps a lease before the claim is answered.
        async with asyncio.timeout(lease_s):
            (started,) = await claim(store)
        assert (await store.finish_attempt(finishing(started), clock.now())).job.status is Status.SUCCEEDED


async def test_what_a_stopped_process_holds_is_free_before_others_give_up(dsn: str) -> None:
    async with opened(dsn) as store, _turns_held(dsn, "UPDATE"):
        await accept(store)


@asynccontextmanager
async def _turns_held(dsn: str, strength: str) -> AsyncIterator[None]:
    """A session as of a process that was stopped between two statements: the tenant's turn is there, and locked."""
    async with opened(dsn) as store:
        await accept(store)
        stopped = await connect(dsn)
        try:
            await stopped.execute("BEGIN")
            assert await stopped.execute(f"SELECT FROM turn FOR {strength}") == "SELECT 1"
            yield
        finally:
            stopped.terminate()
