"""One runner as control sees it: a child process, the channel to it, and the attempts it holds."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Protocol

from coatcheck.execution.channel import Channel
from coatcheck.execution.frames import ImportFailed, Quit, Ready, Start, ToControl, ToRunner
from coatcheck.execution.held import HeldAttempt
from coatcheck.execution.runner_spec import GROUP_SIGNALS, RunnerArguments, RunnerSpec
from coatcheck.observe.logs import get_logger

LAST_WORDS_S = 1.0
# sys.path comes first: without it the package may not be found.
_BOOT = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from coatcheck.execution.runner_main import main
main(sys.argv.pop(1))
"""
# What user code has no business to know.
_WITHHELD = frozenset({"COATCHECK_STORE", "COATCHECK_POSTGRES_LISTEN", "COATCHECK_CRASH_AT"})


class RunnerFailed(Exception):
    """A runner ended before it was ready; the message says why in one sentence."""


class RunnerListener(Protocol):
    """Who is told of a runner's doings."""

    def on_frames(self, runner: "RunnerProcess", frames: Sequence[ToControl]) -> None: ...

    def on_capacity(self) -> None: ...

    def on_gone(self, runner: "RunnerProcess") -> None: ...


class RunnerProcess:
    """A runner from its start to its end.

    `ready` is done when work may come, or raises RunnerFailed. `ended` is set once the process is gone, all it ever
    said was heard and its attempts were told. `held` are the attempts it runs, by number; `deaf` those that were
    fenced off and still run.
    """

    def __init__(self, number: int, spec: RunnerSpec, listener: RunnerListener) -> None:
        self.number = number
        self.spec = spec
        self.held: dict[int, HeldAttempt] = {}
        self.deaf: set[int] = set()
        self.is_retired = False
        self.has_worked = False
        self.pid = 0
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        # Nobody may be waiting when it fails; then the log is where it is told.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._import_timer: asyncio.TimerHandle | None = None
        self.unusable = asyncio.Event()
        self.ended = asyncio.Event()
        self._channel: Channel[ToControl] = Channel(ToControl, self._receive, self._closed, listener.on_capacity)
        self._notices: Channel[ToControl] = Channel(ToControl, self._receive, lambda: None)
        self._has_exited = False
        self._has_closed = False
        self._exit_code: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log = get_logger("runner").bind(runner=number)

    @property
    def is_open(self) -> bool:
        """Whether it may be given work."""
        return self.ready.done() and not self.unusable.is_set()

    @property
    def free_slots(self) -> int:
        """How many attempts it can start now."""
        if not self.is_open or self._channel.is_congested:
            return 0
        return self.spec.concurrency - len(self.held) - len(self.deaf)

    async def start(self) -> None:
        """Spawn the process. Must run on a thread that lives as long as the runner may: its end is the runner's.

        Raises:
            RunnerFailed: the system lets no process be started.
        """
        try:
            ours, notices = self._launch()
        except OSError as error:
            self._fail(f"No runner process can be started: {error.strerror}.")
            raise RunnerFailed(f"No runner process can be started: {error.strerror}.") from error
        with ExitStack() as unless_connected:
            # Whoever gives up while a runner starts must not leave its sockets open.
            unless_connected.enter_context(ours)
            unless_connected.enter_context(notices)
            await self._channel.connect(ours)
            await self._notices.connect(notices)
            unless_connected.pop_all()
        self._import_timer = self._loop.call_later(self.spec.import_timeout_s, self._check_import)

    def send(self, frame: ToRunner) -> None:
        """Send with the other frames of this loop turn."""
        self.has_worked = self.has_worked or isinstance(frame, Start)
        self._channel.send(frame)

    def retire(self) -> None:
        """Take no new work; the process is killed when nothing but deaf attempts is left."""
        self.is_retired = True
        self.unusable.set()
        self.kill_if_done()

    def kill_if_done(self) -> None:
        """Kill a retired runner whose neighbours are done."""
        if self.is_retired and not self.held:
            self.kill()

    def kill(self) -> None:
        """SIGKILL."""
        self.unusable.set()
        if self._process is not None and not self._has_exited:
            self._process.kill()

    async def quit(self, timeout_s: float) -> None:
        """End an idle runner politely, and a deaf one by force after `timeout_s`."""
        self.unusable.set()
        if self.pid == 0:
            return
        self._channel.send(Quit())
        try:
            async with asyncio.timeout(timeout_s):
                await self.ended.wait()
        except TimeoutError:
            self.kill()
            await self.ended.wait()

    def _launch(self) -> tuple[socket.socket, socket.socket]:
        """Spawn the process; returns our ends of its channel and of its notices."""
        with ExitStack() as ours, ExitStack() as theirs:
            channel, their_channel = socket.socketpair()
            ours.enter_context(channel)
            theirs.enter_context(their_channel)
            notices, their_notices = socket.socketpair()
            ours.enter_context(notices)
            theirs.enter_context(their_notices)
            self._process = self._spawn(their_channel.fileno(), their_notices.fileno())
            ours.pop_all()
        self.pid = self._process.pid
        threading.Thread(target=self._await_exit, name=f"coatcheck-runner-{self.number}", daemon=True).start()
        return channel, notices

    def _spawn(self, channel_fd: int, notices_fd: int) -> "subprocess.Popen[bytes]":
        path = [str(entry) or os.getcwd() for entry in sys.path]
        arguments = RunnerArguments(
            channel_fd=channel_fd,
            notices_fd=notices_fd,
            parent_pid=os.getpid(),
            app_ref=self.spec.app_ref,
            concurrency=self.spec.concurrency,
            log_format=self.spec.log_format,
            log_level=self.spec.log_level,
        )
        command = (json.dumps(path), json.dumps(asdict(arguments)))
        # A Ctrl-C reaches the whole group. Blocked here, it waits in the child until the child has a handler for it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
        try:
            return subprocess.Popen(  # noqa: S603 - our own interpreter with our own arguments
                [sys.executable, "-c", _BOOT, *command],
                stdin=subprocess.DEVNULL,
                pass_fds=(channel_fd, notices_fd),
                env={name: value for name, value in os.environ.items() if name not in _WITHHELD},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _await_exit(self) -> None:
        if self._process is None:
            return
        code = self._process.wait()
        try:
            self._loop.call_soon_threadsafe(self._exited, code)
        except RuntimeError:
            # The loop is closed: nobody is left to tell.
            return

    def _receive(self, frames: Sequence[ToControl]) -> None:
        rest = [frame for frame in frames if not self._is_about_start(frame)]
        if rest:
            self._listener.on_frames(self, rest)

    def _is_about_start(self, frame: ToControl) -> bool:
        match frame:
            case Ready():
                if not self.ready.done():
                    self.ready.set_result(None)
                    self._cancel_import_timer()
                    self._log.info("runner_ready", pid=self.pid)
                    self._listener.on_capacity()
            case ImportFailed(reason):
                self._fail(reason)
            case _:
                return False
        return True

    def _check_import(self) -> None:
        if not self.ready.done():
            self._fail(f"Importing {self.spec.app_ref!r} took longer than {self.spec.import_timeout_s:g} seconds.")
            self.kill()

    def _fail(self, reason: str) -> None:
        self.unusable.set()
        self._cancel_import_timer()
        if not self.ready.done():
            self.ready.set_exception(RunnerFailed(reason))

    def _cancel_import_timer(self) -> None:
        if self._import_timer is not None:
            self._import_timer.cancel()

    def _closed(self) -> None:
        # A runner that can no longer be heard is of no use, whatever it does.
        self._has_closed = True
        self.kill()
        self._end_if_over()

    def _exited(self, code: int) -> None:
        self._has_exited = True
        self._exit_code = code
        self.unusable.set()
        # Its last words may still be on the way. Processes it left behind may hold the socket open for ever.
        self._loop.call_later(LAST_WORDS_S, self._listened_enough)
        self._end_if_over()

    def _listened_enough(self) -> None:
        self._channel.abort()
        self._has_closed = True
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not (self._has_exited and self._has_closed) or self.ended.is_set():
            return
        self._notices.abort()
        self._fail(f"The runner ended before it was ready, with exit code {self._exit_code}.")
        self._log.info("runner_ended", pid=self.pid, exit_code=self._exit_code)
        self._listener.on_gone(self)
        self.ended.set()
