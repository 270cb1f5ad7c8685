"""A rescue in another process's place that stops between its look at the leases and its write."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from coatcheck.core.policy import Policies
from coatcheck.store.contract import Store
from coatcheck.testing.conformance.world import LEASE_S, World
from coatcheck.testing.waiting import wait_until_async

PATIENCE_S = 20.0
LOOKS = 7

T = TypeVar("T")


class SecondRescuer:
    """Has a store, a thread and a loop of its own over the world's database.

    async with SecondRescuer(world) as rescuer:
        await rescuer.choose()          # it has read that the leases ran out
        ...                             # what happens meanwhile
        rescued = await rescuer.write()
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._store: Store
        self._thread = ThreadPoolExecutor(1, "second-rescuer")
        self._runner = asyncio.Runner()
        self._has_chosen = threading.Event()
        self._may_write = threading.Event()
        self._turn: Future[int]

    async def __aenter__(self) -> Self:
        self._store = await self._there(self._world.factory.open_store(self._world.clock, True, self._pause))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._may_write.set()
        await self._there(self._store.close())
        await asyncio.wrap_future(self._thread.submit(self._runner.close))
        self._thread.shutdown()

    async def choose(self) -> None:
        """Let the leases that are held now run out in its eyes; returns when it is about to take them back."""
        self._has_chosen.clear()
        self._may_write.clear()
        self._turn = self._thread.submit(self._runner.run, self._look())
        await wait_until_async(lambda: self._has_chosen.is_set() or self._turn.done(), "it to choose", PATIENCE_S)
        assert self._has_chosen.is_set(), "it found nothing to rescue"

    async def write(self) -> int:
        """Let it go on; returns how many attempts it settled as lost."""
        self._may_write.set()
        return await asyncio.wrap_future(self._turn)

    async def _there(self, verb: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(self._runner.run, verb))

    async def _look(self) -> int:
        for _ in range(LOOKS):
            rescued = await self._store.rescue_leases(Policies(self._world.policies), self._world.now, 100)
            if self._has_chosen.is_set():
                return rescued
            self._world.clock.advance(LEASE_S / 5)
        return 0

    def _pause(self, name: str) -> None:
        if name == "reap-selected":
            self._has_chosen.set()
            assert self._may_write.wait(PATIENCE_S), "nobody let it go on"
