"""The reasons not to use a database, each in one sentence, and a schema that is made once by whoever comes first."""

import asyncio

import pytest

from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.stores.postgres import connection as connection_module
from coatcheck.stores.postgres.statements import migrations
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.testing.faults import FaultPoints
from harness.postgres_server import database_of, shared_server
from harness.postgres_work import accept, clock, config, opened


async def refusal(dsn: str, app_name: str = "shop") -> str:
    with pytest.raises(StoreRefused) as caught:
        await PostgresStore(config(dsn, app_name=app_name)).open()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


async def test_another_app_is_refused() -> None:
    dsn = await shared_server().new_database()
    async with opened(dsn):
        pass
    assert "belongs to app 'shop', not to 'bakery'" in await refusal(dsn, "bakery")


async def test_a_newer_schema_is_refused() -> None:
    dsn = await shared_server().new_database()
    async with opened(dsn):
        pass
    await shared_server().execute("UPDATE coatcheck.meta SET value = '99' WHERE name = 'schema'", dsn)
    assert f"has schema 99, this build knows {migrations()[-1][0]}" in await refusal(dsn)


async def test_a_server_that_loses_commits_is_refused() -> None:
    dsn = await shared_server().new_database()
    await shared_server().execute(f"ALTER DATABASE {database_of(dsn)} SET synchronous_commit = off")
    assert "synchronous_commit is off" in await refusal(dsn)


async def test_an_old_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = await shared_server().new_database()
    monkeypatch.setattr(connection_module, "OLDEST_POSTGRES", 990_000)
    assert "is too old; use 14 or later" in await refusal(dsn)


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://u:secret@/jobs?host=/nowhere", "postgresql://u:secret@127.0.0.1:1/jobs"],
)
async def test_a_server_that_is_not_there_is_unavailable_and_no_password_is_told(dsn: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await PostgresStore(config(dsn)).open()
    assert "secret" not in str(caught.value)


async def test_a_database_that_does_not_exist_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await PostgresStore(config(shared_server().dsn("nowhere"))).open()


async def test_many_that_open_an_empty_database_at_once_make_one_schema() -> None:
    dsn = await shared_server().new_database()
    stores = [PostgresStore(config(dsn, listen_dsn=None, connections=1)) for _ in range(5)]
    await asyncio.gather(*(store.open() for store in stores))
    job_id = await accept(stores[0])
    for store in stores:
        assert await store.find_job("acme", job_id, clock.now()) is not None
        await store.close()


async def test_a_migration_that_is_cut_off_leaves_nothing_and_is_done_by_the_next() -> None:
    dsn = await shared_server().new_database()
    steps = len(migrations()[0][1])
    for step in (1, steps // 2, steps):
        faults = FaultPoints()
        faults.raise_at("migration-step", KeyboardInterrupt(), step)  # type: ignore[arg-type] # as a kill would
        with pytest.raises(KeyboardInterrupt):
            await PostgresStore(config(dsn), fault_point=faults).open()
        assert await shared_server().execute("SELECT to_regclass('coatcheck.meta')", dsn) == [(None,)]
    async with opened(dsn) as store:
        await accept(store)
