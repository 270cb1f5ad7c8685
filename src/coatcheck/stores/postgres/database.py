"""The database as its operator sees it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.store.database import SchemaState
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.postgres.connection import Connection, connect, fetch, store_errors
from coatcheck.stores.postgres.dump import PostgresDump
from coatcheck.stores.postgres.schema import MIGRATION_S_MAX, migrate, read_state, refuse_foreign

OPERATOR = "coatcheck db"

# A copy takes as long as it takes, and may wait between two statements for the other store.
_UNHURRIED = """
SET LOCAL search_path = coatcheck; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0
"""


class PostgresDatabase:
    """The engine's StoreDatabase. `is_pooled`: a pooler stands between that lends a session for one transaction."""

    def __init__(self, dsn: str, is_pooled: bool = False, fault_point: FaultPoint = no_fault) -> None:
        self._dsn = dsn
        self._is_pooled = is_pooled
        self._fault_point = fault_point

    async def read_schema(self) -> SchemaState:
        async with self._connected() as connection, connection.transaction():
            return await read_state(connection)

    async def examine(self, app_name: str) -> SchemaState:
        state = await self.read_schema()
        refuse_foreign(state, app_name)
        return state

    async def upgrade(self, app_name: str) -> Sequence[int]:
        async with self._connected() as connection:
            return await migrate(connection, app_name, self._fault_point)

    @asynccontextmanager
    async def open_dump(self) -> AsyncIterator[PostgresDump]:
        async with self._connected() as connection, connection.transaction():
            await _hold(connection)
            ((handed_in,),) = await fetch(connection, "count_inbox")
            if handed_in:
                raise StoreRefused(
                    f"store: jobs in the database were handed in and are not in the queue yet ({handed_in}); let a"
                    " process with the role upkeep run for a moment, and stop it."
                )
            ((alive,),) = await fetch(connection, "count_live_leases")
            if alive:
                # Behind a pooler no session shows whose it is.
                raise StoreRefused(
                    f"store: jobs in the database were running a moment ago ({alive}); stop every process of the store,"
                    " and wait until their leases have run out."
                )
            yield PostgresDump(connection)

    @asynccontextmanager
    async def open_load(self, app_name: str) -> AsyncIterator[PostgresDump]:
        await self.upgrade(app_name)
        async with self._connected() as connection, connection.transaction():
            await _hold(connection)
            dump = PostgresDump(connection)
            ((handed_in,),) = await fetch(connection, "count_inbox")
            if handed_in or any((await dump.count()).values()):
                raise StoreRefused("store: the database to copy to is not empty; name one that was never used.")
            yield dump

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        connection = await connect(self._dsn, self._is_pooled, MIGRATION_S_MAX)
        try:
            with store_errors():
                if not self._is_pooled:
                    # Not by the name of those that serve: a copy looks for these.
                    await connection.execute(f"SET application_name = '{OPERATOR}'")
                yield connection
        finally:
            connection.terminate()


async def _hold(connection: Connection) -> None:
    """See that no process of the engine is connected, and let nobody write until the transaction ends.

    Raises:
        StoreRefused: somebody is connected, or writes now.
    """
    await connection.execute(_UNHURRIED)
    ((sessions,),) = await fetch(connection, "count_sessions")
    if sessions:
        raise StoreRefused(
            f"store: the database is in use (sessions of coatcheck: {sessions}); stop every process of the store."
        )
    try:
        await fetch(connection, "hold_tables")
    except asyncpg.LockNotAvailableError as error:
        raise StoreRefused("store: somebody writes to the database; stop every process of the store.") from error
