"""Handing in work within a transaction of the caller's own, by every way its connection may come."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import httpx
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from tiny_shop import Order, app

from coatcheck.core.problems import Refused
from coatcheck.postgres import submission
from coatcheck.service import Service
from coatcheck.settings import Settings
from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until_async
from harness.postgres_server import database_of, shared_server

WORK = {"title": "Emma"}


class RolledBack(Exception):
    """The caller changes its mind."""


class Place:
    """A service without upkeep, so that what is handed in stays in the inbox, and its edge."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.service = Service(app, Settings(store=dsn, roles=("api",)))
        transport = httpx.ASGITransport(self.service.asgi())
        self._http = httpx.AsyncClient(transport=transport, base_url="http://x")

    async def status(self, job_id: str) -> int:
        return (await self._http.get(f"/orders/{job_id}")).status_code

    async def queued(self) -> list[str]:
        return [job["id"] for job in (await self._http.get("/orders?status=queued")).json()["jobs"]]

    def url(self, driver: str) -> str:
        return self.dsn.replace("postgresql://", f"postgresql+{driver}://")


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place(await shared_server().new_database())
    async with place.service.lifespan():
        yield place


async def by_asyncpg(place: Place, is_kept: bool) -> str:
    connection = await asyncpg.connect(place.dsn)
    transaction = connection.transaction()
    await transaction.start()
    job = await place.service.submit("orders", WORK, connection=connection)
    await (transaction.commit() if is_kept else transaction.rollback())
    await connection.close()
    return job.id


async def by_asyncpg_pool(place: Place, is_kept: bool) -> str:
    async with asyncpg.create_pool(place.dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        job = await place.service.submit("orders", WORK, connection=connection)
        await (transaction.commit() if is_kept else transaction.rollback())
    return job.id


async def by_psycopg(place: Place, is_kept: bool) -> str:
    async with await psycopg.AsyncConnection.connect(place.dsn) as connection:
        job = await place.service.submit("orders", WORK, connection=connection)
        await (connection.commit() if is_kept else connection.rollback())
    return job.id


async def by_psycopg_in_a_block(place: Place, is_kept: bool) -> str:
    connection = await psycopg.AsyncConnection.connect(place.dsn, autocommit=True)
    async with connection, connection.transaction(force_rollback=not is_kept):
        return (await place.service.submit("orders", WORK, connection=connection)).id


async def by_psycopg_without_async(place: Place, is_kept: bool) -> str:
    work = submission(app, "orders", WORK)
    with psycopg.connect(place.dsn) as connection:
        connection.execute(work.statement, work.parameters)
        (connection.commit if is_kept else connection.rollback)()
    return work.job_id


async def by_asyncpg_alone(place: Place, is_kept: bool) -> str:
    work = submission(place.service, "orders", Order(**WORK), paramstyle="$1")
    connection = await asyncpg.connect(place.dsn)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(work.statement, *work.parameters)
    await (transaction.commit() if is_kept else transaction.rollback())
    await connection.close()
    return work.job_id


async def by_sqlalchemy(place: Place, is_kept: bool) -> str:
    work = submission(app, "orders", WORK)
    engine = sqlalchemy.create_engine(place.url("psycopg"))
    with engine.connect() as connection:
        connection.exec_driver_sql(work.statement, work.parameters)
        (connection.commit if is_kept else connection.rollback)()
    engine.dispose()
    return work.job_id


async def by_sqlalchemy_on_asyncpg(place: Place, is_kept: bool) -> str:
    work = submission(app, "orders", WORK, paramstyle="$1")
    engine = create_async_engine(place.url("asyncpg"))
    async with engine.connect() as connection:
        await connection.exec_driver_sql(work.statement, work.parameters)
        await (connection.commit() if is_kept else connection.rollback())
    await engine.dispose()
    return work.job_id


WAYS = [
    by_asyncpg,
    by_asyncpg_pool,
    by_psycopg,
    by_psycopg_in_a_block,
    by_psycopg_without_async,
    by_asyncpg_alone,
    by_sqlalchemy,
    by_sqlalchemy_on_asyncpg,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_job_is_there_if_and_only_if_its_transaction_commits(
    place: Place, way: Callable[[Place, bool], Awaitable[str]]
) -> None:
    dropped = await way(place, False)
    assert await place.status(dropped) == httpx.codes.NOT_FOUND
    kept = await way(place, True)
    assert await place.status(kept) == httpx.codes.OK
    assert await place.queued() == [kept]


async def test_handing_in_is_one_insert_and_nothing_else(place: Place) -> None:
    connection = await asyncpg.connect(place.dsn)
    seen: list[str] = []
    connection.add_query_logger(lambda record: seen.append(record.query))
    async with connection.transaction():
        await place.service.submit("orders", WORK, connection=connection, idempotency_key="first")
        locks = await connection.fetch(
            "SELECT relation::regclass::text, mode FROM pg_locks WHERE locktype = 'relation' AND pid = pg_backend_pid()"
        )
    await connection.close()
    (insert,) = [query for query in seen if "pg_locks" not in query and not query.startswith(("BEGIN", "COMMIT"))]
    assert insert.startswith("INSERT INTO coatcheck.inbox")
    taken = {tuple(lock) for lock in locks if lock[0].startswith("coatcheck.")}
    assert taken == {("coatcheck.inbox", "RowExclusiveLock")}


async def test_what_http_would_refuse_is_refused_before_anything_is_written(place: Place) -> None:
    connection = await asyncpg.connect(place.dsn)
    async with connection.transaction():
        first = await place.service.submit("orders", WORK, connection=connection, idempotency_key="k")
    async with connection.transaction():
        again = await place.service.submit("orders", WORK, connection=connection, idempotency_key="k")
        assert again.id == first.id
        for code, request, options in (
            ("invalid-request", {"name": "Emma"}, {}),
            ("invalid-header", WORK, {"priority": 17}),
            ("idempotency-key-reused", {"title": "Persuasion"}, {"idempotency_key": "k"}),
        ):
            with pytest.raises(Refused) as refused:
                await place.service.submit("orders", request, connection=connection, **options)
            assert refused.value.code == code
        with pytest.raises(KeyError):
            await place.service.submit("nothing", WORK, connection=connection)
    await connection.close()
    assert await place.queued() == [first.id]
    with pytest.raises(Refused):
        submission(app, "orders", {"name": "Emma"})


async def test_a_connection_without_a_transaction_is_refused(place: Place) -> None:
    connection = await asyncpg.connect(place.dsn)
    with pytest.raises(ValueError, match="has no open transaction; begin one"):
        await place.service.submit("orders", WORK, connection=connection)
    await connection.close()
    async with await psycopg.AsyncConnection.connect(place.dsn, autocommit=True) as other:
        with pytest.raises(ValueError, match="has no open transaction; begin one"):
            await place.service.submit("orders", WORK, connection=other)


async def test_a_connection_of_another_kind_is_refused(place: Place) -> None:
    with psycopg.connect(place.dsn) as blocking:
        for connection in (blocking, object()):
            with pytest.raises(TypeError, match=r"run the statement of coatcheck\.postgres\.submission"):
                await place.service.submit("orders", WORK, connection=connection)


async def test_another_engine_says_so_in_one_sentence(tmp_path: Any) -> None:
    service = Service(app, Settings(store=f"sqlite:///{tmp_path / 'jobs.db'}", roles=("api",)))
    async with service.lifespan():
        with pytest.raises(ValueError, match=r"^connection was given, but only a store on PostgreSQL takes [a-z ]+\.$"):
            await service.submit("orders", WORK, connection=object())
        assert (await service.submit("orders", WORK)).id


async def test_a_tenant_has_its_own_jobs_and_its_own_keys(place: Place) -> None:
    mine = await place.service.submit("orders", WORK, idempotency_key="k")
    theirs = await place.service.submit("orders", WORK, idempotency_key="k", tenant="büro 7")
    assert (mine.tenant, theirs.tenant) == ("default", "büro 7")
    assert mine.id != theirs.id
    assert await place.status(theirs.id) == httpx.codes.NOT_FOUND
    assert submission(app, "orders", WORK, tenant="büro 7").parameters[1] == "büro 7"
    for tenant in ("", "a\0b", "line\nbreak", "x" * 256):
        with pytest.raises(ValueError, match="must have 1 to 255 printable characters"):
            await place.service.submit("orders", WORK, tenant=tenant)


async def test_a_repetition_finds_its_job_after_the_deadline(place: Place) -> None:
    clock = SystemClock()
    deadline = clock.now() + 300
    first = await place.service.submit("orders", WORK, idempotency_key="k", deadline=deadline)
    await wait_until_async(lambda: clock.now() > deadline, "the deadline to pass")
    connection = await asyncpg.connect(place.dsn)
    async with connection.transaction():
        again = await place.service.submit(
            "orders", WORK, connection=connection, idempotency_key="k", deadline=deadline
        )
        with pytest.raises(Refused, match="Job-Deadline"):
            await place.service.submit("orders", WORK, connection=connection, deadline=deadline)
    await connection.close()
    assert again.id == first.id
    with pytest.raises(Refused, match="Job-Deadline"):
        submission(app, "orders", WORK, idempotency_key="k", deadline=deadline)


async def test_a_role_needs_no_more_than_to_insert(place: Place) -> None:
    role = f"merchant_{database_of(place.dsn)}"
    for statement in (f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA coatcheck TO {role}"):
        await shared_server().execute(statement, place.dsn)
    await shared_server().execute(f"GRANT INSERT ON coatcheck.inbox TO {role}", place.dsn)
    connection = await asyncpg.connect(place.dsn, user=role)
    async with connection.transaction():
        job = await place.service.submit("orders", WORK, connection=connection, idempotency_key="k")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetch("SELECT * FROM coatcheck.job")
    await connection.close()
    assert await place.queued() == [job.id]


def test_each_submission_is_a_job_of_its_own() -> None:
    works = [submission(app, "orders", WORK) for _ in range(100)]
    assert len({work.job_id for work in works}) == len(works)
    assert all(work.parameters[0] == work.job_id for work in works)
    assert works[0].statement.count("%s") == len(works[0].parameters)


def test_the_statement_needs_no_driver() -> None:
    """Who has another driver than the service need not install the service's."""
    code = "import sys; sys.modules['asyncpg'] = None; import coatcheck.postgres"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
