"""Group commit: what arrived while the last commit ran goes into the next, many rows to a statement.

An answer leaves only after its commit. A member that fails is rolled back alone; when the server fails, nobody's
write is known to have happened and everybody is told so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from coatcheck.core import limits
from coatcheck.store.clock import Clock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.stores.postgres.transaction import Transaction, Transactions

Item = TypeVar("Item")
T = TypeVar("T")

Bulk: TypeAlias = Callable[[Transaction, Sequence[Item]], Awaitable[Sequence[T | Exception]]]
"""An action for all members of a batch that want the same: one answer for each, in order. An answer that is an
exception is raised at its member alone; what the others wrote stands."""


@dataclass(slots=True)
class Member:
    """One member of a batch, and who waits for it."""

    bulk: Bulk[Any, Any]
    item: Any
    future: "asyncio.Future[Any]"


@dataclass(frozen=True, slots=True)
class WriterParts:
    """What a writer works with. `observe_commit` is told the members and the seconds of each commit."""

    transactions: Transactions
    clock: Clock
    observe_commit: Callable[[int, float], None]


class Writer:
    """One lane of commits, one under way at a time.

    Args:
        order: the bulks this lane takes, in the order in which a batch runs them.
        is_one_statement: see Transactions.run.
    """

    def __init__(self, parts: WriterParts, order: Sequence[Bulk[Any, Any]], is_one_statement: bool = False) -> None:
        self._parts = parts
        self._order = {bulk: place for place, bulk in enumerate(order)}
        self._is_one_statement = is_one_statement
        self._waiting: list[Member] = []
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def run(self, bulk: Bulk[Item, T], item: Item) -> T:
        """Put an item into the next commit and return its answer once that commit is durable.

        Raises:
            StoreUnavailable: the server failed, too many writes wait or the store is closed.
        """
        if self._is_closed:
            raise StoreUnavailable("The store is closed.")
        if len(self._waiting) >= limits.COMMIT_QUEUE_MAX:
            raise StoreUnavailable("Too many writes wait for the database.")
        member = Member(bulk, item, asyncio.get_running_loop().create_future())
        self._waiting.append(member)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        result: T = await member.future
        return result

    async def close(self) -> None:
        """Commit what waits, then take nothing more."""
        self._is_closed = True
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[: limits.COMMIT_BATCH_MAX]
                del self._waiting[: limits.COMMIT_BATCH_MAX]
                began_s = self._parts.clock.monotonic_s()
                await self._commit(batch)
                self._parts.observe_commit(len(batch), self._parts.clock.monotonic_s() - began_s)
        finally:
            self._task = None

    async def _commit(self, batch: Sequence[Member]) -> None:
        """Commit the batch as one; where a member fails, each by itself."""
        try:
            answers = await self._transact(batch)
        except StoreUnavailable as error:
            answers = [error for _ in batch]
        except Exception:
            answers = [await self._transact_alone(member) for member in batch]
        for member, answer in zip(batch, answers, strict=True):
            _deliver(member.future, answer)

    async def _transact_alone(self, member: Member) -> Any:
        try:
            (answer,) = await self._transact([member])
        except OSError as error:
            return StoreUnavailable(f"The store cannot write: {error}")
        except Exception as error:
            return error
        return answer

    async def _transact(self, batch: Sequence[Member]) -> Sequence[Any]:
        async def act(transaction: Transaction) -> Sequence[Any]:
            answers: dict[int, Any] = {}
            for bulk in sorted({member.bulk for member in batch}, key=self._order.__getitem__):
                places = [place for place, member in enumerate(batch) if member.bulk == bulk]
                results = await bulk(transaction, [batch[place].item for place in places])
                answers.update(zip(places, results, strict=True))
            return [answers[place] for place in range(len(batch))]

        return await self._parts.transactions.run(act, self._is_one_statement)


def _deliver(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        # One failure may be told to many: each gets an exception of its own, whose traceback is its own.
        future.set_exception(type(answer)(*answer.args) if isinstance(answer, StoreUnavailable) else answer)
    else:
        future.set_result(answer)
