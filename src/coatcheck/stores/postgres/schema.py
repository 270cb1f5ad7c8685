"""The schema: made and brought up to date by one process at a time, and not used where it is another app's."""

from coatcheck.core.faults import FaultPoint
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.postgres.connection import Connection
from coatcheck.stores.postgres.statements import migrations, sql

MIGRATION_S_MAX = 3600.0

_LOCK = (0x636F6174, 1)
# Whoever comes second waits as long as the first one needs.
_PATIENCE = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0"


async def migrate(connection: Connection, app_name: str, fault_point: FaultPoint) -> None:
    """Bring the schema up to date and see that it is this app's. Each migration is one transaction.

    A process that dies between two leaves the first done; the next one goes on from there.

    Raises:
        StoreRefused: the schema belongs to another app or to a newer build.
    """
    newest = migrations()[-1][0]
    while await _migrate_one(connection, app_name, fault_point) < newest:
        pass


async def _migrate_one(connection: Connection, app_name: str, fault_point: FaultPoint) -> int:
    """Take one step, if one is left; returns the number of the schema then."""
    async with connection.transaction():
        await connection.execute(_PATIENCE)
        await connection.fetch(sql("hold_migration"), *_LOCK)
        done = await _schema_number(connection, app_name)
        step = next(((number, statements) for number, statements in migrations() if number > done), None)
        if step is None:
            return done
        number, statements = step
        if done == 0:
            await connection.execute(sql("make_schema"))
        await connection.execute("SET LOCAL search_path = coatcheck")
        for statement in statements:
            await connection.execute(statement)
            fault_point("migration-step")
        if done == 0:
            await connection.execute(sql("write_meta"), "app", app_name)
        await connection.execute(sql("write_meta"), "schema", str(number))
        return number


async def _schema_number(connection: Connection, app_name: str) -> int:
    """The number of the last migration done, 0 where there is no schema yet."""
    if not await connection.fetchval(sql("find_schema")):
        return 0
    await connection.execute("SET LOCAL search_path = coatcheck")
    owner = await connection.fetchval(sql("read_app"))
    if owner != app_name:
        raise StoreRefused(f"store: the database belongs to app {owner!r}, not to {app_name!r}; name another database.")
    number: int = await connection.fetchval(sql("read_schema"))
    newest = migrations()[-1][0]
    if number > newest:
        raise StoreRefused(
            f"store: the database has schema {number}, this build knows {newest}; use a newer coatcheck."
        )
    return number
