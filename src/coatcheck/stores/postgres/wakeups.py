"""Wake-ups: to listeners in this process at once, to other processes by NOTIFY over a connection of their own.

A notification inside a commit would make all commits of the server wait for each other, so hints go out after it, on
a connection whose commits wait for no disk. A hint may be lost; everybody who waits polls as well.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from coatcheck.core.backoff import Backoff
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.store.records import WakeUp, WakeUpKind
from coatcheck.stores.postgres.connection import DRIVER_ERRORS, Connection, connect, fetch
from coatcheck.stores.postgres.transaction import Hints

CHANNEL = "coatcheck"
PROBE_INTERVAL_S = 5.0
PROBE_S_MAX = 5.0
# A notification holds less than 8,000 bytes; an id has 32.
NOTIFIED_IDS_MAX = 200
HINTS_WAITING_MAX = 10_000
RETRY = Backoff(first_s=0.2, factor=2.0, max_s=5.0)
_CATCH_UP = (WakeUpKind.READY, WakeUpKind.SCHEDULED, WakeUpKind.OUTBOX, WakeUpKind.CONTROLS)

Listener = Callable[[WakeUp], None]


class WakeUps:
    """Made and used on the event loop. Without a DSN hints stay in this process."""

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._listeners: list[Listener] = []
        self._waiting: Hints = set()
        self._woken = asyncio.Event()
        self._tried = asyncio.Event()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._log = get_logger("store")

    async def open(self) -> None:
        """Begin to listen; returns once that was tried. A connection that cannot be had now is tried for again."""
        if self._dsn is None:
            self._log.info("hints_stay_here", reason="no direct session to PostgreSQL; other processes are polled for")
            return
        self._task = asyncio.create_task(self._stay_connected(self._dsn))
        await self._tried.wait()

    async def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        self._woken.set()
        if self._task is not None:
            await self._task

    def listen(self, callback: Listener) -> Callable[[], None]:
        """Call `callback` for each hint until the returned function is called."""
        self._listeners.append(callback)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def publish(self, hints: Hints) -> None:
        """Give the hints of one commit to everyone, here and elsewhere."""
        for wakeup in _gather(hints):
            self._call(wakeup)
        # Those that could not be sent for long are of no use any more.
        if self._connection is not None and len(self._waiting) < HINTS_WAITING_MAX:
            self._waiting |= hints
            self._woken.set()

    def _call(self, wakeup: WakeUp) -> None:
        for listener in tuple(self._listeners):
            listener(wakeup)

    async def _stay_connected(self, dsn: str) -> None:
        failures = 0
        while not self._is_closed:
            try:
                connection = await connect(dsn)
            except (StoreUnavailable, StoreRefused) as error:
                failures += 1
                self._report(failures, error)
            else:
                failures = await self._use(connection, failures)
            self._tried.set()
            await self._wait(RETRY.ceiling_s(failures))

    async def _use(self, connection: Connection, failures: int) -> int:
        """Listen and notify until the connection is lost; returns how many failures there are in a row then."""
        try:
            await connection.execute("SET synchronous_commit = off")
            await connection.add_listener(CHANNEL, self._hear)
            self._connection = connection
            self._tried.set()
            if failures:
                self._log.info("listening_again")
                # What was told meanwhile is lost: everybody looks once.
                for kind in _CATCH_UP:
                    self._call(WakeUp(kind))
            failures = 0
            while not self._is_closed:
                await self._send_or_probe(connection)
        except DRIVER_ERRORS as error:
            failures += 1
            self._report(failures, error)
        finally:
            self._connection = None
            self._waiting.clear()
            connection.terminate()
        return failures

    async def _send_or_probe(self, connection: Connection) -> None:
        """Send what waits; where nothing does for a while, see whether the other end is still there."""
        await self._wait(PROBE_INTERVAL_S)
        hints, self._waiting = self._waiting, set()
        texts = [text for wakeup in _gather(hints) for text in _texts(wakeup)]
        if texts:
            await fetch(connection, "notify", CHANNEL, texts, timeout_s=PROBE_S_MAX)
        else:
            await fetch(connection, "read_clock", timeout_s=PROBE_S_MAX)

    async def _wait(self, seconds: float) -> None:
        """Until there are hints to send, the store closes or the time is over."""
        timer = asyncio.get_running_loop().call_later(seconds, self._woken.set)
        await self._woken.wait()
        timer.cancel()
        self._woken.clear()

    def _report(self, failures: int, error: Exception) -> None:
        if failures == 1:
            self._log.warning("not_listening", error=str(error) or type(error).__name__)

    def _hear(self, connection: object, pid: int, channel: str, text: object) -> None:
        own = self._connection
        if own is not None and pid == own.get_server_pid():
            return
        wakeup = _parse(str(text))
        if wakeup is not None:
            self._call(wakeup)


def _gather(hints: Hints) -> list[WakeUp]:
    ids: dict[WakeUpKind, list[str]] = {}
    for kind, job_id in hints:
        ids.setdefault(kind, []).extend([job_id] if job_id else [])
    return [WakeUp(kind, tuple(job_ids)) for kind, job_ids in ids.items()]


def _texts(wakeup: WakeUp) -> Iterator[str]:
    ids = wakeup.job_ids
    for start in range(0, max(len(ids), 1), NOTIFIED_IDS_MAX):
        yield " ".join([wakeup.kind.value, *ids[start : start + NOTIFIED_IDS_MAX]])


def _parse(text: str) -> WakeUp | None:
    kind, *job_ids = text.split(" ")
    try:
        return WakeUp(WakeUpKind(kind), tuple(job_ids))
    except ValueError:
        return None
