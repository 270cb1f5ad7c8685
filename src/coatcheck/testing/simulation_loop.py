"""An event loop on virtual time, on which several simulated processes live and die.

Time stands still while anything can be done, then jumps to the next timer. Each simulated process is a context of its
own; a seeded scheduler chooses whose turn it is. A process can be killed, which drops all it had still to do, or
paused, which keeps it waiting. Depends on how CPython's selector loop keeps its ready handles.
"""

import asyncio
import contextlib
import contextvars
import inspect
import selectors
from asyncio import Handle
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from enum import StrEnum
from random import Random
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack, cast

T = TypeVar("T")
Args = TypeVarTuple("Args")

_PROCESS: contextvars.ContextVar["SimulatedProcess | None"] = contextvars.ContextVar("process", default=None)
_RESOLUTION_S = 1e-6


class Life(StrEnum):
    """Whether a simulated process gets turns."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class ProcessKilled(BaseException):
    """Raised where a process dies in the middle of its work: no `except Exception` may hold it up."""


class NothingHappens(Exception):
    """Everybody waits for ever."""


class SimulatedProcess:
    """What runs, stops and dies together. `parent`: a process that dies takes its children along."""

    def __init__(self, loop: "SimulatedLoop", name: str, parent: "SimulatedProcess | None" = None) -> None:
        self.name = name
        self.life = Life.RUNNING
        self.handles: deque[Handle] = deque()
        self.loop = loop
        self._children: list[SimulatedProcess] = []
        self._at_end: list[Callable[[], None]] = []
        self._context = contextvars.copy_context()
        self._context.run(_PROCESS.set, self)
        loop.processes.append(self)
        if parent is not None:
            parent._children.append(self)

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Do this in the process. The task never ends if the process dies first."""
        return self.loop.create_task(work, context=self._context.copy())

    def call_later(self, seconds: float, callback: Callable[..., None], *args: Any) -> asyncio.TimerHandle:
        """Let the process be told of something, as by a signal."""
        return self.loop.call_later(seconds, callback, *args, context=self._context.copy())

    def at_end(self, callback: Callable[[], None]) -> None:
        """What the kernel does for a process that is gone: closing its files, telling its parent."""
        self._at_end.append(callback)

    def kill(self) -> None:
        """SIGKILL: not one step more."""
        if self.life is Life.DEAD or self.loop.is_over:
            return
        self.life = Life.DEAD
        self.loop.bury(self)
        while self._at_end:
            # Not now: the process may be in the middle of a call.
            self.loop.call_soon(self._at_end.pop(0), context=contextvars.Context())
        for child in self._children:
            child.kill()

    def pause(self, *, with_children: bool) -> None:
        """SIGSTOP, for the process alone or for its group."""
        self._set_life(Life.PAUSED)
        for child in self._children if with_children else ():
            child.pause(with_children=True)

    def resume(self) -> None:
        """SIGCONT, for the group."""
        self._set_life(Life.RUNNING)
        for child in self._children:
            child.resume()

    def _set_life(self, life: Life) -> None:
        if self.life is not Life.DEAD:
            self.life = life


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The loop of one story.

    Args:
        random: chooses which process has its next turn, and how long reads in threads take.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_s = 0.0
        super().__init__(_VirtualSelector(self._let_pass))
        self._clock_resolution = _RESOLUTION_S
        self._ready = _Ready(random)
        # Kept to the end: what is left of a dead process must not be swept away, and unwound, in the middle of a story.
        self._tasks: list[asyncio.Task[Any]] = []
        self.processes: list[SimulatedProcess] = []
        self.failures: list[str] = []
        self.is_over = False
        self.set_exception_handler(self._note_failure)
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Args]], T], *args: *Args
    ) -> "asyncio.Future[T]":
        """Do here, in no time, what a thread would do, and give the answer after a while."""
        future: asyncio.Future[T] = self.create_future()
        try:
            answer = func(*args)
        except Exception as error:
            self.call_later(self._random.random() * 0.002, _fail, future, error)
        else:
            self.call_later(self._random.random() * 0.002, _answer, future, answer)
        return future

    def bury(self, process: SimulatedProcess) -> None:
        """A process is dead: it gets no turn any more."""
        self._ready.drop(process)

    async def clear_away(self) -> None:
        """After the end of a story: let everything that lives or has died unwind. Nobody dies any more."""
        self.is_over = True
        for process in self.processes:
            process.life = Life.RUNNING
        self._ready.revive(self.processes)
        own = asyncio.current_task(self)
        while tasks := [task for task in self._tasks if not task.done() and task is not own]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1)
            await pass_time(1.0)

    def close(self) -> None:
        """Close, with what was to begin and never will."""
        for task in self._tasks:
            work = task.get_coro()
            if (
                not task.done()
                and inspect.iscoroutine(work)
                and inspect.getcoroutinestate(work) == inspect.CORO_CREATED
            ):
                work.close()
        super().close()

    def _make_task(
        self, _loop: asyncio.AbstractEventLoop, work: Any, context: contextvars.Context | None = None
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(work, loop=self, context=context)
        self._tasks.append(task)
        return task

    def _let_pass(self, seconds: float) -> None:
        self._now_s += seconds

    def _note_failure(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, ProcessKilled):
            self.failures.append(f"{context.get('message')}: {error!r}")


async def pass_time(seconds: float) -> None:
    """Return after this many virtual seconds."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _answer, future, None)
    try:
        await future
    finally:
        timer.cancel()


def current_process() -> SimulatedProcess | None:
    """The process whose turn it is; None: the simulation itself."""
    return _PROCESS.get()


class _Ready:
    """The handles that can run now: first come first served within a process, whose turn it is by lot.

    What belongs to no process is the simulation itself and goes first. The dead keep theirs until they are cleared
    away.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._own: deque[Handle] = deque()
        self._waiting: list[SimulatedProcess] = []

    def __len__(self) -> int:
        return len(self._own) + sum(len(process.handles) for process in self._waiting if process.life is Life.RUNNING)

    def append(self, handle: Handle) -> None:
        process = _process_of(handle)
        if process is None:
            self._own.append(handle)
            return
        process.handles.append(handle)
        if len(process.handles) == 1 and process.life is not Life.DEAD:
            self._waiting.append(process)

    def popleft(self) -> Handle:
        if self._own:
            return self._own.popleft()
        running = [process for process in self._waiting if process.life is Life.RUNNING]
        if not running:
            # Those that were ready died, or were stopped, by the turn just done.
            nothing = Handle(_do_nothing, (), asyncio.get_running_loop())
            nothing.cancel()
            return nothing
        process = running[self._random.randrange(len(running))] if len(running) > 1 else running[0]
        handle = process.handles.popleft()
        if not process.handles:
            self._waiting.remove(process)
        return handle

    def drop(self, process: SimulatedProcess) -> None:
        """The process is dead."""
        if process in self._waiting:
            self._waiting.remove(process)

    def revive(self, processes: Sequence[SimulatedProcess]) -> None:
        """All processes are about to be cleared away."""
        self._waiting = [process for process in processes if process.handles]

    def clear(self) -> None:
        self._own.clear()
        self._waiting.clear()


class _VirtualSelector(selectors.DefaultSelector):
    """Sockets are looked at, never waited for. Those of stopped and dead processes are not heard."""

    def __init__(self, let_pass: Callable[[float], None]) -> None:
        super().__init__()
        self._let_pass = let_pass
        self._order: dict[int, int] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._order[key.fd] = len(self._order) if key.fd not in self._order else self._order[key.fd]
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        heard = []
        for key, mask in super().select(0):
            life = _life_of(key)
            if life is Life.RUNNING:
                heard.append((key, mask))
            elif life is Life.DEAD:
                self.unregister(key.fd)
        if heard:
            return sorted(heard, key=lambda event: self._order[event[0].fd])
        if timeout is None:
            raise NothingHappens
        if timeout > 0:
            self._let_pass(timeout)
        return []


class _Placed(Protocol):
    _context: contextvars.Context


def _life_of(key: selectors.SelectorKey) -> Life:
    """The life of the process that listens to a socket."""
    handle = next(handle for handle in key.data if handle is not None)
    process = _process_of(handle)
    return Life.RUNNING if process is None else process.life


def _process_of(handle: Handle) -> SimulatedProcess | None:
    return cast("_Placed", handle)._context.get(_PROCESS)


def _do_nothing() -> None:
    pass


def _answer(future: "asyncio.Future[T]", answer: T) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        future.set_result(answer)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        future.set_exception(error)
