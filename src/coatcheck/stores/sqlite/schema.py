"""The schema: made and brought up to date by one process at a time, and not used where it is another app's."""

from pathlib import Path

import apsw

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.store.database import SchemaState
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.sqlite.statements import migrations, sql


def migrate(
    connection: apsw.Connection,
    path: Path,
    app_name: str,
    fault_point: FaultPoint = no_fault,
    may_migrate: bool = True,
) -> list[int]:
    """Bring the schema up to date and see that the file is this app's. Each migration is one transaction.

    A process that dies between two leaves the first done; the next one goes on from there. Returns the numbers of
    those that were run.

    Raises:
        StoreRefused: the file belongs to another app or to a newer build, or a migration is left and must not be run.
    """
    done: list[int] = []
    newest = migrations()[-1][0]
    while newest not in done:
        number = _migrate_one(connection, path, app_name, fault_point, may_migrate)
        if number is None:
            break
        done.append(number)
    return done


def no_store() -> SchemaState:
    """What there is before the file is made."""
    return SchemaState(None, 0, migrations()[-1][0])


def read_state(connection: apsw.Connection, path: Path) -> SchemaState:
    """What the file's schema is.

    Raises:
        StoreRefused: the file is a database of something else.
    """
    number: int = connection.pragma("user_version")
    if number == 0:
        if connection.execute("SELECT count(*) FROM sqlite_schema").get:
            raise StoreRefused(f"store: {path} is a SQLite database of something else; name another file.")
        return no_store()
    return SchemaState(connection.execute(sql("read_app")).get, number, migrations()[-1][0])


def refuse_foreign(state: SchemaState, path: Path, app_name: str) -> None:
    """Refuse a file that is not this app's or this build's.

    Raises:
        StoreRefused: the file belongs to another app or to a newer build.
    """
    if state.is_newer:
        raise StoreRefused(
            f"store: {path} has schema {state.number}, this build knows {state.newest}; use a newer coatcheck."
        )
    if state.app not in {None, app_name}:
        raise StoreRefused(f"store: {path} belongs to app {state.app!r}, not to {app_name!r}; name another file.")


def refuse_missing(path: Path, app_name: str) -> None:
    """Refuse to go on without a store, where an operator makes it.

    Raises:
        StoreRefused: there is no file.
    """
    if not path.exists():
        raise _left_to_operator(no_store(), path, app_name)


def _migrate_one(
    connection: apsw.Connection, path: Path, app_name: str, fault_point: FaultPoint, may_migrate: bool
) -> int | None:
    """Take one step, if one is left; returns its number."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        state = read_state(connection, path)
        refuse_foreign(state, path, app_name)
        step = next(((number, statements) for number, statements in migrations() if number > state.number), None)
        if step is not None:
            if not may_migrate:
                raise _left_to_operator(state, path, app_name)
            for statement in step[1]:
                connection.execute(statement)
                fault_point("migration-step")
            connection.pragma("user_version", step[0])
            if state.app is None:
                connection.execute(sql("write_app"), {"app": app_name})
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return None if step is None else step[0]


def _left_to_operator(state: SchemaState, path: Path, app_name: str) -> StoreRefused:
    if state.app is None:
        return StoreRefused(
            f"store: {path} is not made yet, and migrate = false leaves that to an operator; run `coatcheck db upgrade"
            f" --app {app_name}`."
        )
    return StoreRefused(
        f"store: {path} has schema {state.number}, this build needs {state.newest}, and migrate = false leaves that to"
        " an operator; run `coatcheck db upgrade`."
    )
