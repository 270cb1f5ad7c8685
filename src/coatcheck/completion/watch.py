"""Waiting for a job to change: woken by the store's hints, with a poll behind them, and over at once at a drain."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.store.clock import Clock
from coatcheck.store.contract import ReadingStore, WakeUpSource
from coatcheck.store.records import Tombstone, WakeUp, WakeUpKind


class WatchedStore(ReadingStore, WakeUpSource, Protocol):
    """What a watch needs of a store."""


class JobWatch:
    """Waits for jobs on behalf of any number of requests. All of it runs on one event loop."""

    def __init__(self, store: WatchedStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._count = 0
        self._stop_listening: Callable[[], None] | None = None
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether nothing waits any more."""
        return self._is_stopped

    @property
    def waits(self) -> int:
        """How many waits are open."""
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether WAITS_MAX waits are open, so that a request had better be answered at once."""
        return self._count >= limits.WAITS_MAX

    def stop(self) -> None:
        """End every wait now, with the job as it stands; later ones do not wait at all."""
        self._is_stopped = True
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self.wake_all()

    def wake_all(self) -> None:
        """Let every wait look again at what it waits for."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.set()

    async def wait(
        self, tenant: str, job_id: str, is_enough: Callable[[JobRecord], bool], timeout_s: float
    ) -> JobRecord | Tombstone | None:
        """The tenant's job once `is_enough`, or as it stands after `timeout_s` seconds; a tombstone or None at once.

        Raises:
            StoreUnavailable: the job could not be read.
        """
        with self._registered(job_id) as waiter:
            found = await self._find(tenant, job_id)
            try:
                async with asyncio.timeout(timeout_s) as timeout:
                    while isinstance(found, JobRecord) and not is_enough(found) and not self._is_stopped:
                        await _hint(waiter)
                        found = await self._find(tenant, job_id)
            except TimeoutError:
                if not timeout.expired():
                    raise
            return found

    async def _find(self, tenant: str, job_id: str) -> JobRecord | Tombstone | None:
        return await self._store.find_job(tenant, job_id, self._clock.now())

    @contextmanager
    def _registered(self, job_id: str) -> Iterator[asyncio.Event]:
        if self._stop_listening is None and not self._is_stopped:
            self._stop_listening = self._store.listen(self._wake)
        waiter = asyncio.Event()
        self._waiters.setdefault(job_id, set()).add(waiter)
        self._count += 1
        try:
            yield waiter
        finally:
            self._count -= 1
            self._waiters[job_id].discard(waiter)
            if not self._waiters[job_id]:
                del self._waiters[job_id]

    def _wake(self, wake_up: WakeUp) -> None:
        if wake_up.kind is not WakeUpKind.CHANGED:
            return
        for job_id in wake_up.job_ids:
            for waiter in self._waiters.get(job_id, ()):
                waiter.set()


async def _hint(waiter: asyncio.Event) -> None:
    """Return at the next hint, or when the poll is due."""
    poll = asyncio.get_running_loop().call_later(limits.WAIT_POLL_INTERVAL_S, waiter.set)
    try:
        await waiter.wait()
    finally:
        poll.cancel()
        waiter.clear()
