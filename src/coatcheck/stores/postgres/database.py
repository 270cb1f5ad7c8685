"""The database as its operator sees it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.store.database import SchemaState
from coatcheck.stores.postgres.connection import Connection, connect, store_errors
from coatcheck.stores.postgres.schema import migrate, read_state, refuse_foreign


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
    async def _connected(self) -> AsyncIterator[Connection]:
        connection = await connect(self._dsn, self._is_pooled)
        try:
            with store_errors():
                yield connection
        finally:
            connection.terminate()
