"""Characters that PostgreSQL cannot hold: what is stored says so, and what is asked for is not found."""

import asyncio

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.outcome import Failed, ResultBody, Succeeded
from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.store.records import Beat, CancelAnswer, Finishing, JobQuery
from harness.postgres_server import shared_server
from harness.postgres_work import POLICIES, TENANT, accept, claim, clock, finishing, opened

NUL = "a\0b"
SHOWN = "a\N{REPLACEMENT CHARACTER}b"


async def test_a_text_with_a_nul_is_stored_with_its_replacement() -> None:
    async with opened(await shared_server().new_database()) as store:
        ids = [await accept(store) for _ in range(3)]
        failing, succeeding = await claim(store, 2)
        await store.extend_leases([Beat(failing.lease, Progress(None, NUL))], clock.now())
        running = await store.find_job(TENANT, failing.job.id, clock.now())
        assert isinstance(running, JobRecord)
        assert running.progress == Progress(None, SHOWN)
        assert await store.record_effect(failing.lease, NUL, b"\0", clock.now()) == b"\0"
        assert await store.find_effect(failing.lease, NUL) == b"\0"
        error = Failed(ErrorInfo(ErrorCategory.HANDLER_ERROR, NUL, None, NUL), False)
        result = Succeeded(ResultBody("text/plain", b"\0", NUL))
        ends = [
            Finishing(failing.lease, error, DEFAULT_POLICY, 0.5),
            Finishing(succeeding.lease, result, DEFAULT_POLICY, 0.5),
        ]
        failed, _ = await asyncio.gather(*(store.finish_attempt(end, clock.now()) for end in ends))
        assert failed.job == await store.find_job(TENANT, failing.job.id, clock.now())
        assert failed.job.error == ErrorInfo(ErrorCategory.HANDLER_ERROR, SHOWN, None, SHOWN)
        stored = await store.read_result(TENANT, succeeding.job.id, clock.now())
        assert stored is not None
        assert (stored.body, stored.file_name) == (b"\0", SHOWN)
        cancelled = await store.cancel_job(TENANT, ids[2], NUL, POLICIES, clock.now())
        assert isinstance(cancelled, CancelAnswer)
        assert cancelled.job.cancel_reason == SHOWN


async def test_no_id_and_no_name_with_a_nul_is_found() -> None:
    async with opened(await shared_server().new_database()) as store:
        await accept(store)
        (item,) = await claim(store)
        await store.finish_attempt(finishing(item), clock.now())
        odd, now = f"{item.job.id}\0", clock.now()
        assert await store.find_job(TENANT, odd, now) is None
        assert await store.read_result(TENANT, odd, now) is None
        assert await store.list_attempts(TENANT, odd) == ()
        assert await store.cancel_job(TENANT, odd, None, POLICIES, now) is None
        assert await store.erase_job(TENANT, odd, now) is None
        for query in (JobQuery(TENANT, 5, operation="\0"), JobQuery(TENANT, 5, before="\0")):
            assert not (await store.list_jobs(query, now)).jobs


async def test_who_asks_for_what_cannot_be_asked_for_fails_alone() -> None:
    async with opened(await shared_server().new_database()) as store:
        job_id, now = await accept(store), clock.now()
        found = await asyncio.gather(
            store.find_job(TENANT, "job_\ud800", now),
            store.find_job(TENANT, job_id, now),
            store.find_job(NUL, job_id, now),
            return_exceptions=True,
        )
        assert [type(one).__name__ for one in found] == ["DataError", "JobRecord", "CharacterNotInRepertoireError"]
