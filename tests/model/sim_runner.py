"""Runners as processes of the story: the real channel, the real loop of a runner, no process of the machine."""

import itertools
import socket
import subprocess
from random import Random
from typing import cast

from coatcheck.app import App
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_loop import RunnerLoop
from coatcheck.execution.runner_process import RunnerListener, RunnerProcess
from coatcheck.execution.runner_spec import RunnerSpec
from coatcheck.execution.watchdog import Watchdog
from coatcheck.execution.worker import Worker
from coatcheck.testing.simulation_loop import SimulatedLoop, SimulatedProcess, pass_time

from .sim_record import Record

START_S_MAX = 0.4
EXIT_S = 0.01
KILLED = -9


class RunnerHome:
    """Where the runners of one worker live.

    Args:
        process: the worker's; its runners die with it.
        app: what the runners "import".
        random: how long things take.
    """

    def __init__(self, process: SimulatedProcess, app: App, record: Record, random: Random) -> None:
        self.process = process
        self.app = app
        self.record = record
        self.random = random
        self.loop: SimulatedLoop = process.loop
        self.living: list[SimulatedProcess] = []


class SimulatedWorker(Worker):
    """A worker whose runners are simulated."""

    def __init__(self, parts: WorkerParts, home: RunnerHome) -> None:
        self._home = home
        self._pids = itertools.count(1000)
        super().__init__(parts)

    def _make_runner(self, is_solo: bool) -> RunnerProcess:
        settings = self._parts.settings
        spec = RunnerSpec("simulated:app", 1 if is_solo else settings.concurrency, is_solo, 120.0, "json", "info")
        return SimulatedRunner(next(self._pids), spec, self._attempts, self._home)


class SimulatedRunner(RunnerProcess):
    """The control side of a simulated runner."""

    def __init__(self, number: int, spec: RunnerSpec, listener: RunnerListener, home: RunnerHome) -> None:
        super().__init__(number, spec, listener)
        self._home = home

    def _launch(self) -> tuple[socket.socket, socket.socket]:
        channel, their_channel = socket.socketpair()
        notices, their_notices = socket.socketpair()
        self.pid = self.number
        child = _Child(self._home, self.spec, f"runner-{self.number}", (their_channel, their_notices))
        child.process.at_end(self._hear_of_end)
        self._process = cast("subprocess.Popen[bytes]", child)
        return channel, notices

    def _hear_of_end(self) -> None:
        self._home.process.call_later(EXIT_S, self._exited, KILLED)


class _Child:
    """The runner's own side; to its control it looks like a process that can be killed."""

    def __init__(
        self, home: RunnerHome, spec: RunnerSpec, name: str, sockets: tuple[socket.socket, socket.socket]
    ) -> None:
        self.process = SimulatedProcess(home.loop, name, parent=home.process)
        self._home = home
        self._sockets = sockets
        self._loop_of_runner: _InLoopRunner | None = None
        self.process.at_end(self._let_go)
        home.living.append(self.process)
        self.process.run(self._live(spec))

    def kill(self) -> None:
        self.process.kill()

    async def _live(self, spec: RunnerSpec) -> None:
        home, (channel, notices) = self._home, self._sockets
        await pass_time(home.random.random() * START_S_MAX)
        channel.setblocking(False)
        self._loop_of_runner = runner = _InLoopRunner(home.app, spec.concurrency, notices)
        await runner.connect(channel)
        await runner.quitting
        self.process.kill()

    def _let_go(self) -> None:
        if self.process in self._home.living:
            self._home.living.remove(self.process)
        self._home.record.end_all(self.process)
        if self._loop_of_runner is not None:
            self._loop_of_runner.hang_up()
        for end in self._sockets:
            end.close()


class _InLoopRunner(RunnerLoop):
    """A runner's loop without the thread that watches it, since here nothing stands still."""

    def __init__(self, app: App, concurrency: int, notices: socket.socket) -> None:
        super().__init__(app, concurrency, notices)
        self._watchdog = _Asleep(self._loop, self._report_blocked)

    def hang_up(self) -> None:
        self._channel.abort()


class _Asleep(Watchdog):
    def start(self) -> None:
        pass
