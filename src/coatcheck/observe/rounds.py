"""Rounds: work that goes on by itself, wakes early when it is told to, and rides out an outage.

An outage is told once when it begins and once when it ends, however often the work is tried in between.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

from coatcheck.core.backoff import Backoff
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import StoreUnavailable

_log = get_logger(__name__)
_random = random.SystemRandom().random
_OUTAGE_BACKOFF = Backoff(first_s=0.2, factor=2.0, max_s=5.0)
_STOP_S = 10.0


class Rounds:
    """Calls `turn` again and again; each turn says for how many seconds at most the next may wait.

    Args:
        name: what the log calls this work.
        turn: one bounded piece of work.
        outages: what a turn raises when something it needs is away. Everything else is a fault of ours and is logged
            with its traceback; the work goes on all the same.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], Awaitable[float]],
        outages: tuple[type[Exception], ...] = (StoreUnavailable,),
        jitter: Callable[[], float] = _random,
    ) -> None:
        self._name = name
        self._turn = turn
        self._outages = outages
        self._jitter = jitter
        self._wakened = asyncio.Event()
        self._is_stopping = False
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._task = asyncio.create_task(self._run(), name=f"coatcheck-{self._name}")

    def wake(self) -> None:
        """Let the next turn begin at once. A failing turn keeps its backoff."""
        if self._failures == 0:
            self._wakened.set()

    async def stop(self) -> None:
        """Let the turn that runs come to its end, then end."""
        self._is_stopping = True
        self._wakened.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_STOP_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def run_once(self) -> float:
        """One turn, whatever happens in it. Returns how many seconds the next may wait."""
        try:
            wait_s = await self._turn()
        except Exception as error:
            # A loop that ended on a fault would end silently.
            return self._failed(error)
        if self._failures:
            _log.info("recovered", work=self._name, failures=self._failures)
            self._failures = 0
        return wait_s

    async def _run(self) -> None:
        while not self._is_stopping:
            self._wakened.clear()
            wait_s = await self.run_once()
            await self._pause(wait_s)

    async def _pause(self, wait_s: float) -> None:
        if wait_s <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._wakened.wait()
        except TimeoutError:
            return

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        if self._failures == 1:
            is_outage = isinstance(error, self._outages)
            log = _log.warning if is_outage else _log.error
            log("interrupted", work=self._name, reason=str(error), exc_info=None if is_outage else error)
        ceiling_s = _OUTAGE_BACKOFF.ceiling_s(self._failures)
        return ceiling_s * (0.5 + 0.5 * self._jitter())


def jittered(interval_s: float, jitter: Callable[[], float] = _random) -> float:
    """The interval, shortened by up to a fifth, so that processes started together do not stay together."""
    return interval_s * (1 - 0.2 * jitter())
