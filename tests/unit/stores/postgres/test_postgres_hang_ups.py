"""Sessions that the server has ended, before anybody sees that the line is gone: given up, and others opened."""

import pytest

from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import WakeUp, WakeUpKind
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.testing.waiting import wait_until_async
from harness.postgres_line import silent_line
from harness.postgres_server import database_of, shared_server
from harness.postgres_work import TENANT, accept, clock, opened

END_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
IS_BACK_S = 15.0


async def test_a_session_that_was_ended_is_given_up() -> None:
    dsn = await shared_server().new_database()
    async with (
        silent_line(shared_server().folder, database_of(dsn)) as line,
        opened(line, connections=1, listen_dsn=None) as store,
    ):
        job_id = await accept(store)
        await shared_server().execute(END_OTHERS, dsn)
        with pytest.raises(StoreUnavailable):
            await store.find_job(TENANT, job_id, clock.now())
        assert await store.find_job(TENANT, job_id, clock.now()) is not None
        await shared_server().execute(END_OTHERS, dsn)
        with pytest.raises(StoreUnavailable):
            await accept(store)
        await accept(store)


async def test_hints_come_again_after_the_listening_session_was_ended() -> None:
    dsn = await shared_server().new_database()
    async with (
        silent_line(shared_server().folder, database_of(dsn)) as line,
        opened(dsn, listen_dsn=line) as store,
        opened(dsn) as other,
    ):
        heard: list[WakeUp] = []
        store.listen(heard.append)

        async def is_heard() -> bool:
            await _can_accept(other)
            return any(hint.kind is WakeUpKind.READY for hint in heard)

        await wait_until_async(is_heard, "hints to arrive")
        await shared_server().execute(END_OTHERS, dsn)
        # What the store tells others goes over the line that is dead, and shows it.
        await wait_until_async(lambda: _can_accept(store), "work to be accepted again")
        heard.clear()
        await wait_until_async(is_heard, "hints to arrive again", IS_BACK_S)


async def _can_accept(store: PostgresStore) -> bool:
    try:
        await accept(store)
    except StoreUnavailable:
        return False
    return True
