"""The runner's side of the channel: starts attempts, stops them and tells how they ended."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from coatcheck.app import App, Operation
from coatcheck.core.errors import ErrorCategory
from coatcheck.execution.attempt import HANDLER_FAILED, run_async, run_blocking
from coatcheck.execution.channel import Channel
from coatcheck.execution.frames import (
    Done,
    EffectAnswer,
    LoopBlocked,
    NotMine,
    Quit,
    Raised,
    Ready,
    SpendAnswer,
    Start,
    Stop,
    Stopped,
    ToRunner,
    Verdict,
    to_bytes,
)
from coatcheck.execution.job import BlockingJob, Job, JobFacts
from coatcheck.execution.line import AttemptLine, Calls, ProgressGatherer
from coatcheck.execution.texts import operator_detail
from coatcheck.execution.watchdog import BLOCKED_S, Watchdog
from coatcheck.store.clock import SystemClock


@dataclass(slots=True)
class _Running:
    """An attempt under way; `task` is None for one that runs in a thread."""

    line: AttemptLine
    task: "asyncio.Task[Verdict] | None" = None


class RunnerLoop:
    """Runs attempts until it is told to quit.

    `quitting` is done when the runner may end: True as it was asked to, False when control is gone.
    """

    def __init__(self, app: App, concurrency: int, notices: socket.socket) -> None:
        self._app = app
        self._notices = notices
        self._loop = asyncio.get_running_loop()
        self.quitting: asyncio.Future[bool] = self._loop.create_future()
        self._channel: Channel[ToRunner] = Channel(ToRunner, self._receive, partial(self._quit, False))
        self._progress = ProgressGatherer(self._loop, self._channel.send)
        self._calls = Calls(self._loop, self._channel.send)
        self._clock = SystemClock()
        self._running: dict[int, _Running] = {}
        self._tasks: dict[object, int] = {}
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="coatcheck-job")
        self._watchdog = Watchdog(self._loop, self._report_blocked)

    async def connect(self, sock: socket.socket) -> None:
        """Take work from the socket."""
        await self._channel.connect(sock)
        self._watchdog.start()
        self._channel.send(Ready())

    def _receive(self, frames: Sequence[ToRunner]) -> None:
        for frame in frames:
            match frame:
                case Start():
                    self._start(frame)
                case Stop():
                    self._stop(frame.seq)
                case EffectAnswer() | SpendAnswer():
                    self._calls.answered(frame)
                case Quit():
                    self._quit(True)
                case _:
                    assert_never(frame)

    def _quit(self, was_asked: bool) -> None:
        if not self.quitting.done():
            self.quitting.set_result(was_asked)

    def _start(self, start: Start) -> None:
        operation = self._app.operations.get(start.operation)
        if operation is None:
            self._channel.send(Done(start.seq, NotMine()))
            return
        facts = JobFacts(
            id=start.job_id,
            attempt=start.attempt,
            chain_id=start.chain_id,
            tenant=start.tenant,
            operation=start.operation,
            correlation_id=start.correlation_id,
            deadline_at=start.deadline_at,
        )
        line = AttemptLine(start.seq, self._clock, self._progress, self._calls)
        if operation.is_async:
            self._start_task(operation, start, facts, line)
        else:
            self._start_thread(operation, start, facts, line)

    def _start_task(self, operation: Operation, start: Start, facts: JobFacts, line: AttemptLine) -> None:
        task = self._loop.create_task(run_async(operation, start, Job(facts, line)))
        self._running[start.seq] = _Running(line, task)
        self._tasks[task] = start.seq
        self._watchdog.set_busy(True)
        task.add_done_callback(self._task_ended)

    def _start_thread(self, operation: Operation, start: Start, facts: JobFacts, line: AttemptLine) -> None:
        self._running[start.seq] = _Running(line)
        future = self._threads.submit(run_blocking, operation, start, BlockingJob(facts, line))
        future.add_done_callback(partial(self._thread_ended, start.seq))

    def _stop(self, seq: int) -> None:
        running = self._running.get(seq)
        if running is None:
            return
        running.line.is_stopped = True
        if running.task is not None:
            running.task.cancel()

    def _task_ended(self, task: "asyncio.Task[Verdict]") -> None:
        seq = self._tasks.pop(task)
        if not self._tasks:
            self._watchdog.set_busy(False)
        # A task that is cancelled before its first step never reaches the code that makes a verdict of it.
        self._ended(seq, Stopped() if task.cancelled() else _verdict(task.exception, task.result))

    def _thread_ended(self, seq: int, future: "Future[Verdict]") -> None:
        self._loop.call_soon_threadsafe(self._ended, seq, _verdict(future.exception, future.result))

    def _ended(self, seq: int, verdict: Verdict) -> None:
        del self._running[seq]
        self._progress.forget(seq)
        self._channel.send(Done(seq, verdict))

    def _report_blocked(self, task: "asyncio.Task[object] | None", where: str) -> None:
        # On the watchdog's thread, while the loop stands still: hence a socket of its own.
        seq = self._tasks.get(task)
        tasks = list(self._tasks.values())
        if seq is None and len(tasks) == 1:
            seq = tasks[0]
        self._notices.sendall(to_bytes(LoopBlocked(seq, BLOCKED_S, where)))


def _verdict(exception: Callable[[], BaseException | None], result: Callable[[], Verdict]) -> Verdict:
    error = exception()
    if error is None:
        return result()
    return Raised(ErrorCategory.HANDLER_ERROR, HANDLER_FAILED, True, None, operator_detail(error))
