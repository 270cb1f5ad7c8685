"""Runners that take one job at a time: started when they are needed, kept a while, killed with a job that is deaf."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine

from coatcheck.execution.held import HeldAttempt, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerFailed, RunnerProcess
from coatcheck.observe.logs import get_logger

QUIT_S = 2.0


class SoloRunners:
    """At most `settings.solo_runners` of them. `give_back` gets the attempts no runner can be started for."""

    def __init__(
        self,
        parts: WorkerParts,
        make: Callable[[], RunnerProcess],
        assign: Callable[[RunnerProcess, HeldAttempt], None],
        give_back: Callable[[HeldAttempt], None],
    ) -> None:
        self._parts = parts
        self._make = make
        self._assign = assign
        self._give_back = give_back
        self._loop = asyncio.get_running_loop()
        self._runners: list[RunnerProcess] = []
        self._waiting: deque[HeldAttempt] = deque()
        self._idle: dict[RunnerProcess, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._is_backing_off = False
        self._is_closed = False
        self._log = get_logger("worker")

    @property
    def runners(self) -> list[RunnerProcess]:
        """Every one that has not ended."""
        return list(self._runners)

    @property
    def waiting(self) -> int:
        """How many attempts wait for one."""
        return sum(attempt.phase is Phase.WAITING for attempt in self._waiting)

    @property
    def free_slots(self) -> int:
        """How many more could run now, in runners that are idle or still to be started."""
        if self._is_backing_off:
            return 0
        busy = sum(bool(runner.held or runner.deaf or runner.unusable.is_set()) for runner in self._runners)
        return max(0, self._parts.settings.solo_runners - busy - self.waiting)

    def place(self, attempt: HeldAttempt) -> None:
        """Run the attempt as soon as there is a runner for it."""
        self._waiting.append(attempt)
        self.pump()

    def pump(self) -> None:
        """Bring waiting attempts and runners together, and start runners for the rest."""
        for runner in self._runners:
            attempt = self._next_waiting() if runner.free_slots > 0 else None
            if attempt is not None:
                self._unset_idle(runner)
                self._assign(runner, attempt)
        starting = sum(not runner.ready.done() for runner in self._runners)
        room = self._parts.settings.solo_runners - len(self._runners)
        for _ in range(min(room, self.waiting - starting)):
            if not self._is_backing_off and not self._is_closed:
                runner = self._make()
                self._runners.append(runner)
                self._begin(self._start(runner))

    def set_idle(self, runner: RunnerProcess) -> None:
        """A runner has nothing to do: it is ended if that lasts."""
        if runner.is_open and not runner.held and runner not in self._idle:
            self._idle[runner] = self._loop.call_later(self._parts.settings.solo_idle_s, self._end_idle, runner)

    def forget(self, runner: RunnerProcess) -> None:
        """A runner has ended."""
        self._unset_idle(runner)
        if runner in self._runners:
            self._runners.remove(runner)

    async def close(self, timeout_s: float) -> None:
        """End them all."""
        self._is_closed = True
        for runner in self.runners:
            self._unset_idle(runner)
        await asyncio.gather(*(runner.quit(timeout_s) for runner in self.runners))
        await asyncio.gather(*self._tasks)

    async def _start(self, runner: RunnerProcess) -> None:
        if self._is_closed:
            self.forget(runner)
            return
        try:
            await runner.start()
            await runner.ready
        except RunnerFailed as error:
            if runner.pid == 0:
                self.forget(runner)
            self._back_off(error)
        else:
            self._failures = 0
            self.pump()
            self.set_idle(runner)

    def _back_off(self, error: RunnerFailed) -> None:
        if self._is_closed:
            return
        self._failures += 1
        self._log.error("runner_failed", reason=str(error), tries=self._failures)
        self._is_backing_off = True
        self._loop.call_later(self._parts.settings.restart.ceiling_s(self._failures), self._try_again)
        while (attempt := self._next_waiting()) is not None:
            self._give_back(attempt)

    def _try_again(self) -> None:
        self._is_backing_off = False
        self.pump()

    def _next_waiting(self) -> HeldAttempt | None:
        while self._waiting:
            attempt = self._waiting.popleft()
            if attempt.phase is Phase.WAITING:
                return attempt
        return None

    def _unset_idle(self, runner: RunnerProcess) -> None:
        timer = self._idle.pop(runner, None)
        if timer is not None:
            timer.cancel()

    def _end_idle(self, runner: RunnerProcess) -> None:
        self._idle.pop(runner, None)
        if not runner.held:
            self._begin(runner.quit(QUIT_S))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
