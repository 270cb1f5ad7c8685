"""The life of a serving process: start, listen, drain at the first signal, stop at the second.

After the first SIGTERM or SIGINT the server answers on with 503 for the drain delay, waits and streams end, workers
finish what they can within the grace time. A second signal gives up the rest at once, a third ends the process.
"""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import uvloop
from starlette.types import ASGIApp

from coatcheck.http.connections import ConnectionLimits
from coatcheck.http.probes import build_probes
from coatcheck.http.server import HttpServer, ServerOptions, ServerRefused
from coatcheck.observe.logs import get_logger
from coatcheck.runtime import Runtime, StartRefused
from coatcheck.settings import Settings
from coatcheck.store.clock import Clock

_log = get_logger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_EXIT_BY_SIGNAL = 128
_ONE_SIGNAL_S = 0.25
_GC_THRESHOLDS = (20_000, 10, 10)


class StopSignals:
    """Counts the process's signals to stop."""

    def __init__(self, clock: Clock) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self.last_number = 0
        self._clock = clock
        self._counted_at_s = float("-inf")

    def receive(self, number: int) -> None:
        """A signal came; the third ends the process on the spot.

        A Ctrl-C may come twice at once, from the terminal and from whatever started us; that counts as one.
        """
        now_s = self._clock.monotonic_s()
        if now_s - self._counted_at_s < _ONE_SIGNAL_S:
            return
        self._counted_at_s = now_s
        self.last_number = number
        if not self.first.is_set():
            _log.info("draining", signal=signal.Signals(number).name)
            self.first.set()
        elif not self.second.is_set():
            _log.warning("stopping_now", signal=signal.Signals(number).name)
            self.second.set()
        else:
            os._exit(_EXIT_BY_SIGNAL + number)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Take the process's signals inside the block."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.receive, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def run_until_stopped(runtime: Runtime, on_started: Callable[[str | None], None]) -> int:
    """Serve until the process is told to stop. Returns its exit code: 0 after a drain, 128 + signal after a second.

    Args:
        on_started: called with the base URL, or None when nothing listens.

    Raises:
        StartRefused: something about the settings, the store or the port forbids it; nothing is left running.
    """
    _collect_less()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(runtime, StopSignals(runtime.clock), on_started))


async def serve(runtime: Runtime, signals: StopSignals, on_started: Callable[[str | None], None]) -> int:
    """`run_until_stopped` for a running event loop."""
    with signals.installed():
        server = _bound_server(runtime)
        try:
            await _unless_stopped(signals.first, _start(runtime, server))
            if not signals.first.is_set():
                _tell_started(runtime, None if server is None else server.url, on_started)
            await signals.first.wait()
            await _unless_stopped(signals.second, _drain(runtime, server))
        finally:
            if server is not None:
                await server.abort()
            await runtime.stop()
            _log.info("stopped")
    return _EXIT_BY_SIGNAL + signals.last_number if signals.second.is_set() else 0


def _collect_less() -> None:
    """What is there now lives as long as the process, and neither a request nor a connection leaves cycles behind.

    Looking for them in the midst of a burst is what made its slowest answers. Handlers are not concerned: they run in
    processes of their own.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _tell_started(runtime: Runtime, url: str | None, on_started: Callable[[str | None], None]) -> None:
    settings = runtime.settings
    operations = list(runtime.app.operations)
    _log.info("started", url=url, roles=list(settings.roles), store=settings.store_name, operations=operations)
    on_started(url)


async def _start(runtime: Runtime, server: HttpServer | None) -> None:
    await runtime.start()
    if server is not None:
        try:
            await server.start(_edge(runtime))
        except ServerRefused as error:
            raise StartRefused(str(error)) from error


async def _drain(runtime: Runtime, server: HttpServer | None) -> None:
    async with asyncio.TaskGroup() as parts:
        parts.create_task(runtime.drain())
        if server is not None:
            parts.create_task(_close_after_delay(server, runtime.settings.drain_delay_s))


async def _close_after_delay(server: HttpServer, delay_s: float) -> None:
    # Load balancers and clients still come for a while: they are told to go elsewhere.
    await asyncio.sleep(delay_s)
    await server.close()


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, or give it up when `stop` is set."""
    working, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, stopped):
            task.cancel()
        await asyncio.gather(working, stopped, return_exceptions=True)


def _bound_server(runtime: Runtime) -> HttpServer | None:
    settings = runtime.settings
    port = settings.port if "api" in settings.roles else settings.metrics_port
    if port is None:
        return None
    server = HttpServer(_options(settings, port), runtime.metrics, runtime.clock)
    try:
        server.bind()
    except ServerRefused as error:
        raise StartRefused(str(error)) from error
    return server


def _options(settings: Settings, port: int) -> ServerOptions:
    return ServerOptions(
        host=settings.host,
        port=port,
        limits=ConnectionLimits(
            connections_max=settings.connections_max,
            headers_bytes_max=settings.headers_bytes_max,
            headers_timeout_s=settings.headers_timeout_s,
            keep_alive_s=settings.keep_alive_s,
        ),
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        tls_client_ca=settings.tls_client_ca,
    )


def _edge(runtime: Runtime) -> ASGIApp:
    if "api" in runtime.settings.roles:
        return runtime.asgi()
    return build_probes(runtime.store, runtime.metrics, runtime.draining, runtime.settings)
