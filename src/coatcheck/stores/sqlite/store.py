"""The embedded store: the engine's parts as one object, opened and closed as a whole."""

import itertools
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import apsw

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.store.clock import Clock, SystemClock
from coatcheck.store.records import WakeUp
from coatcheck.stores.sqlite.acceptance import Acceptances
from coatcheck.stores.sqlite.claims import Claiming
from coatcheck.stores.sqlite.commands import Commands
from coatcheck.stores.sqlite.commit_mark import CommitMark
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.connection import (
    open_writer,
    refuse_damage,
    refuse_unsafe_place,
    store_errors,
)
from coatcheck.stores.sqlite.controls import Controlling
from coatcheck.stores.sqlite.costs import Costs
from coatcheck.stores.sqlite.operating import Operating
from coatcheck.stores.sqlite.outbox import Outbox, RelayTurn
from coatcheck.stores.sqlite.readers import Readers
from coatcheck.stores.sqlite.reading import Reading
from coatcheck.stores.sqlite.revoking import Revoking
from coatcheck.stores.sqlite.schema import migrate, refuse_missing
from coatcheck.stores.sqlite.turnstile import Turnstile
from coatcheck.stores.sqlite.upkeep import BeatWatch, Sweeping
from coatcheck.stores.sqlite.wakeups import WakeUps
from coatcheck.stores.sqlite.wal_check import refuse_lost_log, refuse_orphaned_log
from coatcheck.stores.sqlite.writer import Writer, WriterParts


class SqliteStore(Acceptances, Claiming, Costs, Reading, Commands, Outbox, Sweeping, Controlling, Operating, Revoking):
    """One SQLite file as a Store.

    Every process that opens the file has its own writer thread; they take turns. All of it belongs to the event
    loop on which `open` was awaited.
    """

    def __init__(self, config: SqliteConfig, clock: Clock | None = None, fault_point: FaultPoint = no_fault) -> None:
        self.clock = clock or SystemClock()
        self._config = config
        self._fault_point = fault_point
        self._beats = BeatWatch(config.lease_s)
        self._rounds = itertools.count()

    async def open(self) -> None:
        path = self._config.path
        with store_errors(path):
            refuse_unsafe_place(path)
            if not self._config.may_migrate:
                refuse_missing(path, self._config.app_name)
            await self._open(path)

    async def _open(self, path: Path) -> None:
        async with AsyncExitStack() as opened:
            turnstile = Turnstile(path)
            opened.callback(turnstile.close)
            mark = CommitMark(path)
            opened.callback(mark.close)
            connection = self._open_file(turnstile, mark)
            opened.callback(connection.close)
            self._relay_turn = RelayTurn(path)
            opened.callback(self._relay_turn.close)
            self._readers = Readers(path)
            opened.push_async_callback(self._readers.close)
            self._wakeups = WakeUps(path)
            opened.callback(self._wakeups.close)
            self._writer = self._make_writer(self._writer_parts(connection, turnstile, mark))
            self._writer.start()
            opened.push_async_callback(self._writer.close)
            self._opened = opened.pop_all()

    async def close(self) -> None:
        await self._opened.aclose()

    def listen(self, callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        """See WakeUpSource."""
        return self._wakeups.listen(callback)

    def _open_file(self, turnstile: Turnstile, mark: CommitMark) -> apsw.Connection:
        path = self._config.path
        with turnstile:
            refuse_orphaned_log(path)
            connection = open_writer(path)
            try:
                refuse_lost_log(connection, path)
                mark.refuse_lost_commits(connection)
                refuse_damage(connection, path)
                migrate(connection, path, self._config.app_name, self._fault_point, self._config.may_migrate)
            except BaseException:
                # Closing would move the log into the file and remove it; what is refused stays as it was found.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close()
                raise
            return connection

    def _make_writer(self, parts: WriterParts) -> Writer:
        return Writer(parts)

    def _writer_parts(self, connection: apsw.Connection, turnstile: Turnstile, mark: CommitMark) -> WriterParts:
        return WriterParts(
            connection,
            turnstile,
            mark,
            self._config.events,
            self._fault_point,
            self._wakeups.publish,
            self.clock,
            self._config.observe_commit,
        )
