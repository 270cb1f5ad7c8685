"""Reads of one job, which are asked for most: those that came while the last read ran go into the next, together."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.store.errors import StoreUnavailable
from coatcheck.stores.postgres.rows import Row, columns
from coatcheck.stores.postgres.transaction import Transactions


@dataclass(slots=True)
class Wish:
    """A job somebody waits to read."""

    job_id: str
    tenant: str
    now: InstantMs
    future: "asyncio.Future[Row | None]"


class Readers:
    """Made and used on the event loop."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._waiting: list[Wish] = []
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def find(self, tenant: str, job_id: str, now: InstantMs) -> Row | None:
        """The row of find_jobs for one job.

        Raises:
            StoreUnavailable: the server could not be reached, too many reads wait or the store is closed.
        """
        if self._is_closed:
            raise StoreUnavailable("The store is closed.")
        if len(self._waiting) >= limits.COMMIT_QUEUE_MAX:
            raise StoreUnavailable("Too many reads wait for the database.")
        wish = Wish(job_id, tenant, now, asyncio.get_running_loop().create_future())
        self._waiting.append(wish)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await wish.future

    async def close(self) -> None:
        """Answer what was asked, then nothing more."""
        self._is_closed = True
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        try:
            while self._waiting:
                wishes = self._waiting[: limits.COMMIT_BATCH_MAX]
                del self._waiting[: limits.COMMIT_BATCH_MAX]
                await self._read(wishes)
        finally:
            self._task = None

    async def _read(self, wishes: Sequence[Wish]) -> None:
        asked = columns([(wish.job_id, wish.tenant, wish.now) for wish in wishes], 3)
        try:
            rows = await self._transactions.read("find_jobs", *asked, limits.INLINE_RESULT_BYTES_MAX)
        except StoreUnavailable as error:
            for wish in wishes:
                # Each gets an exception of its own, whose traceback is its own.
                _fail(wish, StoreUnavailable(*error.args))
            return
        except Exception as error:
            # Somebody asks for what cannot be asked for; that is nobody else's fault.
            if len(wishes) == 1:
                _fail(wishes[0], error)
            else:
                for wish in wishes:
                    await self._read([wish])
            return
        found = {row[0]: row for row in rows}
        for number, wish in enumerate(wishes, start=1):
            if not wish.future.done():
                wish.future.set_result(found.get(number))


def _fail(wish: Wish, error: Exception) -> None:
    if not wish.future.done():
        wish.future.set_exception(error)
