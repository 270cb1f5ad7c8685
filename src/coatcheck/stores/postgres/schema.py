"""The schema: made and brought up to date by one process at a time, and not used where it is another app's."""

from coatcheck.core.faults import FaultPoint
from coatcheck.store.database import SchemaState
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.postgres.connection import SESSION, Connection
from coatcheck.stores.postgres.statements import migrations, sql

MIGRATION_S_MAX = 24 * 3600.0

_LOCK = (0x636F6174, 1)
# Whoever comes second waits as long as the first one needs.
_PATIENCE = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0"
# An index on a large table takes its time; a lock that somebody else holds is waited for no longer than usual.
_STEP = f"SET LOCAL search_path = coatcheck; SET LOCAL lock_timeout = '{SESSION['lock_timeout']}'"


async def migrate(
    connection: Connection, app_name: str, fault_point: FaultPoint, may_migrate: bool = True
) -> list[int]:
    """Bring the schema up to date and see that it is this app's. Each migration is one transaction.

    A process that dies between two leaves the first done; the next one goes on from there. Returns the numbers of
    those that were run.

    Raises:
        StoreRefused: the schema belongs to another app or to a newer build, or a migration is left and must not be run.
    """
    done: list[int] = []
    newest = migrations()[-1][0]
    while newest not in done:
        number = await _migrate_one(connection, app_name, fault_point, may_migrate)
        if number is None:
            break
        done.append(number)
    return done


async def read_state(connection: Connection) -> SchemaState:
    """What the database's schema is; for within a transaction."""
    newest = migrations()[-1][0]
    if not await connection.fetchval(sql("find_schema")):
        return SchemaState(None, 0, newest)
    await connection.execute("SET LOCAL search_path = coatcheck")
    app = await connection.fetchval(sql("read_app"))
    return SchemaState(app, await connection.fetchval(sql("read_schema")), newest)


def refuse_foreign(state: SchemaState, app_name: str) -> None:
    """Refuse a schema that is not this app's or this build's.

    Raises:
        StoreRefused: the schema belongs to another app or to a newer build.
    """
    if state.app not in {None, app_name}:
        raise StoreRefused(
            f"store: the database belongs to app {state.app!r}, not to {app_name!r}; name another database."
        )
    if state.is_newer:
        raise StoreRefused(
            f"store: the database has schema {state.number}, this build knows {state.newest}; use a newer coatcheck."
        )


async def _migrate_one(connection: Connection, app_name: str, fault_point: FaultPoint, may_migrate: bool) -> int | None:
    """Take one step, if one is left; returns its number."""
    async with connection.transaction():
        await connection.execute(_PATIENCE)
        await connection.fetch(sql("hold_migration"), *_LOCK)
        state = await read_state(connection)
        refuse_foreign(state, app_name)
        step = next(((number, statements) for number, statements in migrations() if number > state.number), None)
        if step is None:
            return None
        if not may_migrate:
            raise _left_to_operator(state, app_name)
        number, statements = step
        if state.app is None:
            await connection.execute(sql("make_schema"))
        await connection.execute(_STEP)
        for statement in statements:
            await connection.execute(statement)
            fault_point("migration-step")
        if state.app is None:
            await connection.execute(sql("write_meta"), "app", app_name)
        await connection.execute(sql("write_meta"), "schema", str(number))
        return number


def _left_to_operator(state: SchemaState, app_name: str) -> StoreRefused:
    if state.app is None:
        return StoreRefused(
            "store: the database has no store yet, and migrate = false leaves that to an operator; run `coatcheck db"
            f" upgrade --app {app_name}`."
        )
    return StoreRefused(
        f"store: the database has schema {state.number}, this build needs {state.newest}, and migrate = false leaves"
        " that to an operator; run `coatcheck db upgrade`."
    )
