"""The file as its operator sees it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import apsw

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.store.database import SchemaState
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.sqlite.commit_mark import CommitMark
from coatcheck.stores.sqlite.connection import (
    open_alone,
    open_reader,
    open_writer,
    refuse_damage,
    refuse_unsafe_place,
    store_errors,
)
from coatcheck.stores.sqlite.dump import SqliteDump
from coatcheck.stores.sqlite.schema import migrate, no_store, read_state, refuse_foreign
from coatcheck.stores.sqlite.turnstile import Turnstile
from coatcheck.stores.sqlite.wal_check import refuse_lost_log, refuse_orphaned_log


class SqliteDatabase:
    """The engine's StoreDatabase."""

    def __init__(self, path: Path, fault_point: FaultPoint = no_fault) -> None:
        self._path = path
        self._fault_point = fault_point

    async def read_schema(self) -> SchemaState:
        with store_errors(self._path):
            refuse_unsafe_place(self._path)
            if not _has_content(self._path):
                return no_store()
            with closing(open_reader(self._path)) as connection:
                return read_state(connection, self._path)

    async def examine(self, app_name: str) -> SchemaState:
        with store_errors(self._path):
            refuse_unsafe_place(self._path)
            refuse_orphaned_log(self._path)
            if not _has_content(self._path):
                return no_store()
            # In a writer's turn: a log that grows meanwhile would look like one that was cut.
            with _turn(self._path), closing(open_reader(self._path)) as connection:
                _refuse_unsound(connection, self._path)
                state = read_state(connection, self._path)
                refuse_foreign(state, self._path, app_name)
                return state

    async def upgrade(self, app_name: str) -> Sequence[int]:
        with store_errors(self._path):
            refuse_unsafe_place(self._path)
            with _turn(self._path):
                refuse_orphaned_log(self._path)
                with _closed_if_fine(open_writer(self._path)) as connection:
                    _refuse_unsound(connection, self._path)
                    return migrate(connection, self._path, app_name, self._fault_point)

    @asynccontextmanager
    async def open_dump(self) -> AsyncIterator[SqliteDump]:
        with store_errors(self._path):
            refuse_orphaned_log(self._path)
            with closing(open_alone(self._path)) as connection:
                # What is read out stays as it is, its log included.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.pragma("query_only", True)
                _refuse_unsound(connection, self._path)
                yield SqliteDump(connection)

    @asynccontextmanager
    async def open_load(self, app_name: str) -> AsyncIterator[SqliteDump]:
        await self.upgrade(app_name)
        with store_errors(self._path), closing(open_alone(self._path)) as connection:
            dump = SqliteDump(connection)
            if any((await dump.count()).values()):
                raise StoreRefused(f"store: {self._path} is not empty; name a file that does not exist yet.")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield dump
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    turnstile = Turnstile(path)
    try:
        with turnstile:
            yield
    finally:
        turnstile.close()


@contextmanager
def _closed_if_fine(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """A connection whose end, after a refusal, leaves the log as it was found."""
    with closing(connection):
        try:
            yield connection
        except BaseException:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise


def _refuse_unsound(connection: apsw.Connection, path: Path) -> None:
    refuse_lost_log(connection, path)
    mark = CommitMark(path)
    try:
        mark.refuse_lost_commits(connection)
    finally:
        mark.close()
    refuse_damage(connection, path)
