"""An answered commit is on the disk, whatever others tell the server or a session that is lent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from coatcheck.stores.postgres.store import PostgresStore
from harness.postgres_pooler import pooled
from harness.postgres_server import database_of, shared_server
from harness.postgres_work import accept, claim, clock, finishing, opened

TABLES = ("job", "idempotency_key", "lease", "attempt", "result")
SEE = """
CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.seen VALUES (current_setting('synchronous_commit'));
        RETURN NULL;
    END
$$
"""


async def watch(dsn: str) -> None:
    """Note of every write how durable its commit is to be."""
    triggers = [
        f"CREATE TRIGGER see AFTER INSERT ON coatcheck.{table} EXECUTE FUNCTION public.see()" for table in TABLES
    ]
    for statement in ("CREATE TABLE public.seen (setting text)", SEE, *triggers):
        await shared_server().execute(statement, dsn)


async def seen(dsn: str) -> set[str]:
    return {row[0] for row in await shared_server().execute("SELECT setting FROM public.seen", dsn)}


async def work(store: PostgresStore) -> None:
    for _ in range(3):
        await accept(store)
        (running,) = await claim(store)
        await store.finish_attempt(finishing(running), clock.now())


@asynccontextmanager
async def server_told_off(dsn: str) -> AsyncIterator[None]:
    """Sessions of the server that have not said otherwise do not wait for the disk."""
    other = await asyncpg.connect(dsn)
    await shared_server().execute("ALTER SYSTEM SET synchronous_commit = off")
    try:
        await shared_server().execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(10):
            while await other.fetchval("SHOW synchronous_commit") != "off":
                pass
        yield
    finally:
        await shared_server().execute("ALTER SYSTEM RESET synchronous_commit")
        await shared_server().execute("SELECT pg_reload_conf()")
        await other.close()


async def test_what_the_server_is_told_later_changes_nothing_for_sessions_that_are_open() -> None:
    dsn = await shared_server().new_database()
    async with opened(dsn, connections=2) as store:
        await watch(dsn)
        await work(store)
        async with server_told_off(dsn):
            await work(store)
    assert await seen(dsn) == {"on"}


async def test_nobody_is_let_down_by_a_neighbour_behind_the_pooler() -> None:
    dsn = await shared_server().new_database()
    async with (
        pooled(shared_server().folder, database_of(dsn), 2) as pooler,
        opened(pooler.dsn, is_pooled=True, listen_dsn=None) as store,
    ):
        await watch(dsn)
        await work(store)
        for _ in range(4):
            neighbour = await asyncpg.connect(pooler.dsn, statement_cache_size=0)
            await neighbour.execute("SET synchronous_commit = off")
            neighbour.terminate()
        await work(store)
    assert await seen(dsn) == {"on"}


async def test_what_is_more_than_on_is_kept() -> None:
    dsn = await shared_server().new_database()
    await shared_server().execute(f"ALTER DATABASE {database_of(dsn)} SET synchronous_commit = remote_apply")
    for is_pooled in (False, True):
        async with opened(dsn, is_pooled=is_pooled, listen_dsn=None) as store:
            if not is_pooled:
                await watch(dsn)
            await work(store)
    assert await seen(dsn) == {"remote_apply"}
