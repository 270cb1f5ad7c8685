"""The runner process: ends with its parent, ignores the group's signals, imports the app, runs what it is sent."""

import asyncio
import ctypes
import faulthandler
import gc
import os
import signal
import socket
import sys
from typing import NoReturn

import msgspec
import uvloop

from coatcheck.app import App
from coatcheck.execution.app_ref import AppNotFound, load_app
from coatcheck.execution.frames import ImportFailed, to_bytes
from coatcheck.execution.runner_loop import RunnerLoop
from coatcheck.execution.runner_spec import GROUP_SIGNALS, RunnerArguments
from coatcheck.observe.logs import configure_logging, get_logger

_PR_SET_PDEATHSIG = 1


def main(command: str) -> None:
    """Run attempts until told to quit, or until the parent is gone. `command`: RunnerArguments as JSON."""
    arguments = msgspec.json.decode(command, type=RunnerArguments)
    faulthandler.enable()
    _end_with_parent(arguments.parent_pid)
    _leave_signals_to_parent()
    configure_logging(arguments.log_format, arguments.log_level)
    channel, notices = _own_socket(arguments.channel_fd), _own_socket(arguments.notices_fd)
    loop = uvloop.new_event_loop()
    # Modules of the app may look for a loop while they are imported.
    asyncio.set_event_loop(loop)
    try:
        app = load_app(arguments.app_ref)
    except AppNotFound as error:
        get_logger("runner").warning("app_import_failed", app=arguments.app_ref, exc_info=error.__cause__)
        _refuse(channel, str(error))
    gc.collect()
    gc.freeze()
    was_asked = _run(loop, app, arguments.concurrency, (channel, notices))
    sys.stdout.flush()
    sys.stderr.flush()
    if not was_asked:
        # Threads of handlers may be at work, and nobody waits for them any more.
        os._exit(0)


def _run(
    loop: asyncio.AbstractEventLoop, app: App, concurrency: int, sockets: tuple[socket.socket, socket.socket]
) -> bool:
    async def connect() -> RunnerLoop:
        runner = RunnerLoop(app, concurrency, sockets[1])
        await runner.connect(sockets[0])
        return runner

    runner = loop.run_until_complete(connect())
    while not runner.quitting.done():
        try:
            loop.run_until_complete(runner.quitting)
        except (SystemExit, KeyboardInterrupt) as error:
            # Raised by a task of the user's own, it leaves the loop; the task that awaits it gets it too.
            get_logger("runner").warning("exit_ignored", error=repr(error))
    return runner.quitting.result()


def _end_with_parent(parent_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(0)


def _leave_signals_to_parent() -> None:
    # A handler that does nothing, unlike SIG_IGN, is not inherited by programs that user code starts.
    for number in GROUP_SIGNALS:
        signal.signal(number, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)


def _own_socket(fd: int) -> socket.socket:
    sock = socket.socket(fileno=fd)
    sock.set_inheritable(False)
    return sock


def _refuse(channel: socket.socket, reason: str) -> NoReturn:
    channel.sendall(to_bytes(ImportFailed(reason)))
    sys.stderr.flush()
    os._exit(1)
