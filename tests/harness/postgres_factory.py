"""PostgreSQL for the shipped suite: one database of the tests' own server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import asyncpg

from coatcheck.core.faults import FaultPoint
from coatcheck.store.contract import Store
from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.database import PostgresDatabase
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import LEASE_S, Capabilities
from harness.postgres_server import shared_server

_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'coatcheck'::regnamespace AND relkind = 'r' AND relname NOT IN ('meta', 'relay_turn')
"""


_APP = "conformance"
_templates: list[str] = []


async def _template() -> str:
    """A database with the schema in it: to copy it is quicker than to make the schema for each test."""
    if not _templates:
        dsn = await shared_server().new_database()
        await PostgresDatabase(dsn).upgrade(_APP)
        _templates.append(dsn)
    return _templates[0]


class PostgresFactory:
    """One database, made when it is first opened, unless it is given. A lease ends by the database's clock, whoever
    watches it.

    `is_pooled`: the store does as it must behind a pooler that lends sessions for one transaction.
    """

    capabilities = Capabilities(has_lease_ends=True, has_inbox=True)

    def __init__(self, is_pooled: bool = False, dsn: str | None = None) -> None:
        self._is_pooled = is_pooled
        self._dsn = dsn

    @property
    def dsn(self) -> str:
        """Where the database is, once it is there."""
        assert self._dsn is not None
        return self._dsn

    async def open_store(self, clock: ManualClock, events: bool, fault_point: FaultPoint) -> Store:
        if self._dsn is None:
            self._dsn = await shared_server().new_passing_database(await _template())
        config = PostgresConfig(
            dsn=self._dsn,
            app_name=_APP,
            listen_dsn=self._dsn,
            # One connection for everything is the least a pooler may leave a process.
            connections=1 if self._is_pooled else 4,
            is_pooled=self._is_pooled,
            lease_s=LEASE_S,
            events=events,
            lease_clock=lambda: round(clock.monotonic_s() * 1000),
        )
        store = PostgresStore(config, clock, fault_point)
        await store.open()
        return store

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        connection = await asyncpg.connect(self._dsn)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def count_rows(self) -> Mapping[str, int]:
        names = [row[0] for row in await shared_server().execute(_TABLES, self._dsn)]
        counts = ", ".join(f"(SELECT count(*) FROM coatcheck.{name})" for name in names)  # noqa: S608 - from the schema
        ((*numbers,),) = await shared_server().execute(f"SELECT {counts}", self._dsn)
        return dict(zip(names, numbers, strict=True))
