"""The runners many attempts share: as many as are wanted, each replaced with backoff when it dies or goes deaf."""

import asyncio
from collections.abc import Callable

from coatcheck.core import limits
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerFailed, RunnerProcess
from coatcheck.observe.logs import get_logger

# A runner that died without ever having had work was well all the same if it lived this long.
STABLE_S = 30.0


class SharedRunners:
    """Keeps `settings.runners` of them. `on_failed` is called when a runner could not be replaced yet."""

    def __init__(self, parts: WorkerParts, make: Callable[[], RunnerProcess]) -> None:
        self._parts = parts
        self._make = make
        self._runners: list[RunnerProcess] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._has_ended = asyncio.Event()
        self._log = get_logger("worker")
        self.on_failed: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Start them and wait until each is ready.

        Raises:
            RunnerFailed: one of them cannot run the app.
        """
        loop = asyncio.get_running_loop()
        firsts: list[asyncio.Future[None]] = [loop.create_future() for _ in range(self._parts.settings.runners)]
        self._keepers = [loop.create_task(self._keep(first)) for first in firsts]
        try:
            await asyncio.gather(*firsts)
        except BaseException:
            await self.close(0.0)
            raise

    @property
    def runners(self) -> list[RunnerProcess]:
        """Every one that has not ended."""
        return list(self._runners)

    @property
    def free_slots(self) -> int:
        return sum(runner.free_slots for runner in self._runners)

    def pick(self) -> RunnerProcess | None:
        """The runner with the most room, or None where no attempt can start now."""
        best: RunnerProcess | None = None
        most = 0
        for runner in self._runners:
            free = runner.free_slots
            if free > most:
                best, most = runner, free
        return best

    def forget(self, runner: RunnerProcess) -> None:
        """A runner has ended."""
        if runner in self._runners:
            self._runners.remove(runner)
            self._has_ended.set()

    async def close(self, timeout_s: float) -> None:
        """End them all."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(runner.quit(timeout_s) for runner in self.runners))

    async def _keep(self, first: "asyncio.Future[None]") -> None:
        failures = 0
        while True:
            runner = self._make()
            self._runners.append(runner)
            try:
                await runner.start()
                await runner.ready
            except RunnerFailed as error:
                if not first.done():
                    first.set_exception(error)
                    return
                failures += 1
                self._log.error("runner_failed", reason=str(error), tries=failures)
                self.on_failed()
                if runner.pid == 0:
                    self.forget(runner)
            else:
                if not first.done():
                    first.set_result(None)
                failures = await self._life(runner, failures)
            self._parts.metrics.count("runner_restarts")
            if failures:
                await asyncio.sleep(self._parts.settings.restart.ceiling_s(failures))
            await self._wait_for_room()

    async def _life(self, runner: RunnerProcess, failures: int) -> int:
        clock = self._parts.clock
        started_s = clock.monotonic_s()
        await runner.unusable.wait()
        if runner.is_retired:
            # It runs well but for a handler that is deaf.
            return failures
        if runner.has_worked:
            # A job may have brought it down, as often as that job may be tried: nobody else's work waits for it.
            return 0
        return 0 if clock.monotonic_s() - started_s >= STABLE_S else failures + 1

    async def _wait_for_room(self) -> None:
        """Deaf handlers' runners may live on for their neighbours, but not without number."""
        while sum(runner.is_retired for runner in self._runners) >= limits.RETIRED_RUNNERS_MAX:
            self._has_ended.clear()
            await self._has_ended.wait()
