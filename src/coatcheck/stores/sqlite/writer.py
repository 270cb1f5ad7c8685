"""The one writer of this process: a thread that gathers what arrived while the last commit ran into the next.

An answer leaves only after its commit. A member that fails is rolled back alone; when the file itself fails,
nobody's write happened and everybody is told so.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import apsw

from coatcheck.core import limits
from coatcheck.core.faults import FaultPoint
from coatcheck.store.clock import Clock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.commit_mark import CommitMark
from coatcheck.stores.sqlite.connection import BUSY_TIMEOUT_MS, is_unavailable
from coatcheck.stores.sqlite.transaction import Action, Bulk, Item, Transaction
from coatcheck.stores.sqlite.turnstile import Turnstile

T = TypeVar("T")
Hints: TypeAlias = set[tuple[WakeUpKind, str]]

CHECKPOINT_PAGES = 2_000
TRUNCATE_PAGES = 32_000
TRUNCATE_BUSY_MS = 100


@dataclass(slots=True)
class Member:
    """One member of a batch, and who waits for it: an action, or an item for an action that takes many."""

    action: Action[Any] | None
    future: "asyncio.Future[Any]"
    bulk: Bulk[Any, Any] | None = None
    item: Any = None
    result: Any = None
    error: BaseException | None = None

    def run(self, transaction: Transaction) -> None:
        """Do this member's part by itself."""
        if self.action is not None:
            self.result = self.action(transaction)
        elif self.bulk is not None:
            (self.result,) = self.bulk(transaction, [self.item])


@dataclass(frozen=True, slots=True)
class WriterParts:
    """What a writer works with. `observe_commit` is told the members and the seconds of each commit."""

    connection: apsw.Connection
    turnstile: Turnstile
    mark: CommitMark
    has_events: bool
    fault_point: FaultPoint
    publish: Callable[[Hints], None]
    clock: Clock
    observe_commit: Callable[[int, float], None]


class Writer:
    """Runs actions in group commits. Made and started on the event loop that will await it."""

    def __init__(self, parts: WriterParts) -> None:
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Member | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="coatcheck-writer", daemon=True)
        self._wal_pages = 0
        self._is_closed = False
        parts.connection.set_wal_hook(self._note_wal)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def run(self, action: Action[T]) -> "asyncio.Future[T]":
        """Run an action in the next commit; its result is there to await once that commit is durable.

        Raises:
            StoreUnavailable: the file failed, too many writes wait or the store is closed; the action did not happen.
        """
        return self._wait_for(Member(action, self._loop.create_future()))

    def run_bulk(self, bulk: Bulk[Item, T], item: Item) -> "asyncio.Future[T]":
        """As `run`, for an action that takes all items of the batch at once."""
        return self._wait_for(Member(None, self._loop.create_future(), bulk, item))

    def is_alive(self) -> bool:
        """Whether the thread still commits."""
        return self._thread.is_alive()

    async def close(self) -> None:
        """Commit what is queued, then stop the thread."""
        self._is_closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _wait_for(self, member: Member) -> "asyncio.Future[Any]":
        if self._is_closed:
            raise StoreUnavailable("The store is closed.")
        if self._queue.qsize() >= limits.COMMIT_QUEUE_MAX:
            raise StoreUnavailable("Too many writes wait for the disk.")
        self._enqueue(member)
        return member.future

    def _enqueue(self, member: Member) -> None:
        self._queue.put(member)

    def _work(self) -> None:
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Commit what has gathered; False once the writer is closed."""
        batch, is_open = self._gather()
        if batch:
            began_s = self._parts.clock.monotonic_s()
            hints = self._commit(batch)
            self._loop.call_soon_threadsafe(self._deliver, batch, hints)
            self._parts.observe_commit(len(batch), self._parts.clock.monotonic_s() - began_s)
            self._checkpoint()
        return is_open

    def _gather(self) -> tuple[list[Member], bool]:
        batch: list[Member] = []
        member = self._queue.get()
        while member is not None:
            batch.append(member)
            if len(batch) >= limits.COMMIT_BATCH_MAX:
                return batch, True
            try:
                member = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: Sequence[Member]) -> Hints:
        """Commit the batch as one; where a member fails, again with each member behind a savepoint."""
        try:
            with self._parts.turnstile:
                try:
                    return self._transact(batch, self._run_together)
                except Exception as error:
                    if is_unavailable(error):
                        raise
                return self._transact(batch, self._run_apart)
        except Exception as error:
            for member in batch:
                member.error = StoreUnavailable(f"The store cannot write: {error}")
            return set()

    def _transact(self, batch: Sequence[Member], run: Callable[[Transaction, Sequence[Member]], None]) -> Hints:
        connection = self._parts.connection
        transaction = Transaction(connection, self._parts.has_events, self._parts.fault_point)
        connection.execute("BEGIN IMMEDIATE")
        try:
            before = connection.total_changes()
            run(transaction, batch)
            number = transaction.row("count_commit") if connection.total_changes() > before else None
            self._parts.fault_point("before-commit")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if number is not None:
            self._parts.fault_point("committed-before-mark")
            self._parts.mark.write(number[0])
        return transaction.hints

    @staticmethod
    def _run_together(transaction: Transaction, batch: Sequence[Member]) -> None:
        together: dict[Bulk[Any, Any], list[Member]] = {}
        for member in batch:
            if member.bulk is None:
                member.run(transaction)
            else:
                together.setdefault(member.bulk, []).append(member)
        for bulk, members in together.items():
            results = bulk(transaction, [member.item for member in members])
            for member, result in zip(members, results, strict=True):
                member.result = result

    def _run_apart(self, transaction: Transaction, batch: Sequence[Member]) -> None:
        connection = self._parts.connection
        for member in batch:
            hints = set(transaction.hints)
            connection.execute("SAVEPOINT member")
            try:
                member.run(transaction)
            except Exception as error:
                if is_unavailable(error):
                    raise
                connection.execute("ROLLBACK TO member")
                transaction.hints = hints
                member.error = error
            connection.execute("RELEASE member")

    def _deliver(self, batch: Sequence[Member], hints: Hints) -> None:
        for member in batch:
            if member.future.done():
                continue
            if member.error is not None:
                member.future.set_exception(member.error)
            else:
                member.future.set_result(member.result)
        if hints:
            self._parts.publish(hints)

    def _note_wal(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Move the log into the file, in the writer's turn. A reader in the way only puts it off."""
        if self._wal_pages < CHECKPOINT_PAGES:
            return
        connection = self._parts.connection
        mode = apsw.SQLITE_CHECKPOINT_PASSIVE
        if self._wal_pages >= TRUNCATE_PAGES:
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE
            connection.set_busy_timeout(TRUNCATE_BUSY_MS)
        try:
            with self._parts.turnstile:
                self._parts.fault_point("wal-checkpoint")
                connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            return
        finally:
            self._wal_pages = 0
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
