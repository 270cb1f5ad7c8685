"""One write transaction as the verbs see it, and how it is run: begun, committed, run again after a conflict."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import asyncpg

from coatcheck.core import events
from coatcheck.core.events import EventType
from coatcheck.core.faults import FaultPoint
from coatcheck.core.job import JobRecord
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.postgres.connection import (
    SESSION_OF_TRANSACTION,
    Connection,
    fetch,
    is_conflict,
    store_errors,
    unavailable,
)
from coatcheck.stores.postgres.connections import Connections
from coatcheck.stores.postgres.rows import Row, columns
from coatcheck.stores.postgres.statements import sql

T = TypeVar("T")
Hints: TypeAlias = set[tuple[WakeUpKind, str]]

RUNS_MAX = 5
_OUTBOX_COLUMNS = 8


class Transaction:
    """Handed to each action. An action may run again (after a conflict, or alone if a neighbour failed), so it must
    not keep anything outside the transaction."""

    def __init__(
        self, connection: Connection, has_events: bool, fault_point: FaultPoint, commits_each: bool = False
    ) -> None:
        self._connection = connection
        self.has_events = has_events
        self.commits_each = commits_each
        """Whether each statement is a transaction by itself, so that what one wrote stands though the next fails."""
        self.fault_point = fault_point
        self.hints: Hints = set()

    async def run(self, statement: str, /, *values: Any) -> int:
        """Execute a statement; returns how many rows it changed."""
        status: str = await self._connection.execute(sql(statement), *values)
        return int(status.rpartition(" ")[2])

    async def row(self, statement: str, /, *values: Any) -> Row | None:
        """The first row of a statement, or None."""
        rows = await fetch(self._connection, statement, *values)
        return rows[0] if rows else None

    async def rows(self, statement: str, /, *values: Any) -> Sequence[Row]:
        """All rows of a statement; every one that can return many has a limit."""
        return await fetch(self._connection, statement, *values)

    def hint(self, kind: WakeUpKind, job_id: str = "") -> None:
        """Wake somebody up after the commit."""
        self.hints.add((kind, job_id))

    async def tell(self, told: Sequence[tuple[EventType, JobRecord]]) -> None:
        """Write the outbox entries of changes of status, where a channel is configured."""
        if not self.has_events or not told:
            return
        await self.run("insert_outbox", *columns([_entry(event, job) for event, job in told], _OUTBOX_COLUMNS))
        self.fault_point("outbox-written")
        self.hint(WakeUpKind.OUTBOX)


Action: TypeAlias = Callable[[Transaction], Awaitable[T]]


class Transactions:
    """Runs actions. An answer leaves only after its commit; then the hints go out."""

    def __init__(
        self,
        connections: Connections,
        publish: Callable[[Hints], None],
        has_events: bool,
        is_pooled: bool,
        fault_point: FaultPoint,
    ) -> None:
        self._connections = connections
        self._publish = publish
        self._has_events = has_events
        self._is_pooled = is_pooled
        self._fault_point = fault_point
        self._begin = f"BEGIN; {SESSION_OF_TRANSACTION}" if is_pooled else "BEGIN"

    async def run(self, action: Action[T], is_one_statement: bool = False) -> T:
        """Run an action and return its result once its commit is durable.

        `is_one_statement`: everything the action writes it writes in one statement, which then needs no more than one
        round trip. Where the connection is lost while a commit is under way nobody knows whether it happened; the
        caller is told that the store is unavailable, and a repeat finds what is there.

        Raises:
            StoreUnavailable: the server could not be reached or could not do it.
        """
        with store_errors():
            for _ in range(RUNS_MAX - 1):
                try:
                    return await self._run(action, is_one_statement and not self._is_pooled)
                except asyncpg.PostgresError as error:
                    if not is_conflict(error):
                        raise
            return await self._run(action, is_one_statement and not self._is_pooled)

    async def read(self, statement: str, /, *values: Any) -> Sequence[Row]:
        """One statement that only reads, in a snapshot of its own.

        Raises:
            StoreUnavailable: the server could not be reached.
        """
        with store_errors():
            async with self._connections.lend() as connection:
                if not self._is_pooled:
                    return await fetch(connection, statement, *values)
                await connection.execute(self._begin)
                rows = await fetch(connection, statement, *values)
                await connection.execute("COMMIT")
                return rows

    async def _run(self, action: Action[T], is_alone: bool) -> T:
        async with self._connections.lend() as connection:
            transaction = Transaction(connection, self._has_events, self._fault_point, is_alone)
            try:
                if is_alone:
                    self._fault_point("before-commit")
                    result = await action(transaction)
                else:
                    result = await self._commit(connection, transaction, action)
            except OSError as error:
                if connection.is_closed():
                    raise unavailable(error) from error
                raise
        if transaction.hints:
            self._publish(transaction.hints)
        return result

    async def _commit(self, connection: Connection, transaction: Transaction, action: Action[T]) -> T:
        await connection.execute(self._begin)
        try:
            result = await action(transaction)
            self._fault_point("before-commit")
        except Exception:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        status = await connection.execute("COMMIT")
        assert status == "COMMIT", "no statement of a transaction fails unnoticed"
        return result


def _entry(event: EventType, job: JobRecord) -> Row:
    data = events.event_data(job)
    return event.value, job.id, job.tenant, job.operation, job.version, job.updated_at, job.correlation_id, data
