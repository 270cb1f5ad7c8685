"""SQL stands in files, one statement each; every file is used, and every statement prepares on a migrated store."""

import ast
from pathlib import Path

import apsw
import apsw.ext
import pytest

from coatcheck.stores.postgres.config import PostgresConfig
from coatcheck.stores.postgres.connection import connect
from coatcheck.stores.postgres.store import PostgresStore
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from harness.postgres_server import shared_server

from .sources import PACKAGE, ROOT, Source, refuse, sources

STORES = PACKAGE / "stores"
ENGINES = sorted(folder.parent for folder in STORES.glob("*/sql"))
RUNNERS = {"sql", "run", "row", "rows", "read", "fetch"}


def _names(engine: Path) -> set[str]:
    return {path.stem for path in (engine / "sql").iterdir()}


def _sources(engine: Path) -> tuple[Source, ...]:
    return sources(str(engine.relative_to(ROOT)))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_sql_file_is_used(engine: Path) -> None:
    texts = {
        node.value
        for source in _sources(engine)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert sorted(_names(engine) - texts) == []


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_statement_that_is_run_has_a_file(engine: Path) -> None:
    names = _names(engine)
    refuse(
        [
            source.at(node.lineno, f"no file sql/{argument}.sql")
            for source in _sources(engine)
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call) and _called(node) in RUNNERS
            for argument in _named(node)
            if argument not in names
        ]
    )


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_folders_hold_sql_only(engine: Path) -> None:
    files = [path for folder in ("sql", "migrations") for path in (engine / folder).rglob("*") if path.is_file()]
    strange = [path.name for path in files if path.suffix not in {".sql"} and path.name != "__init__.py"]
    assert [name for name in strange if not name.endswith(".pyc")] == []


async def test_each_sqlite_statement_prepares_and_is_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(SqliteConfig(path, "architecture"))
    await store.open()
    await store.close()
    connection = apsw.Connection(str(path))
    try:
        for file in sorted((STORES / "sqlite" / "sql").glob("*.sql")):
            assert _is_one_statement(connection, file.read_text("utf-8")), f"{file.name} holds more than one statement"
    finally:
        connection.close()


def test_each_step_of_a_sqlite_migration_is_one_statement() -> None:
    connection = apsw.Connection(":memory:")
    for file in sorted((STORES / "sqlite" / "migrations").rglob("*.sql")):
        statement = file.read_text("utf-8")
        assert _is_one_statement(connection, statement), f"{file.name} holds more than one statement"
        connection.execute(statement)


async def test_each_postgres_statement_and_migration_prepares_and_is_alone() -> None:
    dsn = await shared_server().new_database()
    store = PostgresStore(PostgresConfig(dsn, "architecture"))
    await store.open()
    await store.close()
    connection = await connect(dsn)
    try:
        for file in sorted((STORES / "postgres" / "sql").glob("*.sql")):
            # Only one statement can be prepared at a time.
            await connection.prepare(file.read_text("utf-8"))
        await connection.execute("DROP SCHEMA coatcheck CASCADE; CREATE SCHEMA coatcheck")
        for file in sorted((STORES / "postgres" / "migrations").rglob("*.sql")):
            await connection.fetch(file.read_text("utf-8"))
    finally:
        await connection.close()


def _is_one_statement(connection: apsw.Connection, statement: str) -> bool:
    """Prepare the statement without running it.

    Raises:
        apsw.Error: it does not prepare.
    """
    return not (apsw.ext.query_info(connection, statement).query_remaining or "").strip()


def _named(call: ast.Call) -> list[str]:
    """The statement a call names: its first argument, or the one after the connection."""
    place = 1 if _called(call) == "fetch" else 0
    return [
        argument.value
        for argument in call.args[place : place + 1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
