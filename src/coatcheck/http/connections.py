"""One client's connection, with the bounds uvicorn leaves open.

Headers must come within a time and a size, an answer must be read at some speed, and when too many connections are
held the one that has been idle longest makes room. So slow or silent clients cost nobody else anything.
"""

import asyncio
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import cast

import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from coatcheck.admission.correlation import new_correlation_id
from coatcheck.core.problems import PROBLEMS
from coatcheck.observe.metrics import Metrics

_STALLED_S = 30.0
_READ_REFUSAL_S = 1.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The bounds of a connection, and how many there may be."""

    connections_max: int
    headers_bytes_max: int
    headers_timeout_s: float
    keep_alive_s: float

    def with_connections_max(self, connections_max: int) -> "ConnectionLimits":
        """The same with another number of connections."""
        return replace(self, connections_max=connections_max)


class Connections:
    """All connections of a server. Idle ones stand in the order in which they became idle."""

    def __init__(self, limits: ConnectionLimits, metrics: Metrics) -> None:
        self.limits = limits
        self._metrics = metrics
        self._all: set[Connection] = set()
        self._idle: dict[Connection, None] = {}
        self._emptied = asyncio.Event()

    def add(self, connection: "Connection") -> None:
        """Take a connection in, at the cost of the one that has been idle longest if there are too many."""
        self._all.add(connection)
        self._idle[connection] = None
        if len(self._all) > self.limits.connections_max:
            longest_idle = next(iter(self._idle))
            self.remove(longest_idle)
            longest_idle.transport.abort()
        self._metrics.set("http_connections", len(self._all))

    def remove(self, connection: "Connection") -> None:
        """A connection is gone."""
        self._all.discard(connection)
        self._idle.pop(connection, None)
        self._metrics.set("http_connections", len(self._all))
        if not self._all:
            self._emptied.set()

    def set_busy(self, connection: "Connection") -> None:
        """A request has come."""
        self._idle.pop(connection, None)

    def set_idle(self, connection: "Connection") -> None:
        """An answer has gone."""
        if connection in self._all:
            self._idle[connection] = None

    async def wait_empty(self, timeout_s: float) -> None:
        """Return when no connection is left, or after `timeout_s` seconds."""
        if not self._all:
            return
        self._emptied.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()
        except TimeoutError:
            return


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with the bounds of `connections`."""

    def __init__(
        self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop, connections: Connections
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._connections = connections
        self.url = b""
        self._is_head_open = False
        self._is_refused = False
        self._head_bytes = 0
        self._late_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._connections.add(self)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timers()
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_head_open:
            self._late_bytes += len(data)
        super().data_received(data)
        if self._is_head_open or self._is_between_requests():
            self._await_head()
        if self._is_head_open:
            self._check_head(max(len(self.url) + self._head_bytes, self._late_bytes))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None
        super().resume_writing()

    # Called by the parser

    def on_message_begin(self) -> None:
        self._is_head_open = True
        self._head_bytes = self._late_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + len(b": \r\n")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._is_refused:
            return
        self._is_head_open = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._check_head(len(self.url) + self._head_bytes)
        if not self._is_refused:
            self._connections.set_busy(self)
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._connections.set_idle(self)

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:
            super().send_400_response(msg)

    # Bounds

    def _is_between_requests(self) -> bool:
        """Whether no answer is due and uvicorn waits without a time: after bytes that begin no request."""
        return self.cycle is None or (self.cycle.response_complete and self.timeout_keep_alive_task is None)

    def _check_head(self, head_bytes: int) -> None:
        bytes_max = self._connections.limits.headers_bytes_max
        if head_bytes > bytes_max:
            self._refuse("headers-too-large", f"Send at most {bytes_max} bytes of request line and headers.")

    def _await_head(self) -> None:
        if self._head_timer is None:
            timeout_s = self._connections.limits.headers_timeout_s
            self._head_timer = self.loop.call_later(timeout_s, self._head_timed_out)

    def _head_timed_out(self) -> None:
        self._head_timer = None
        if self._is_head_open:
            self._refuse("request-timeout", "The request's headers took too long.")
        else:
            self.transport.close()

    def _watch_reader(self, unread_bytes: int) -> None:
        """Give up a client that takes nothing of its answer: what it does not read stands in our memory."""
        self._reader_timer = self.loop.call_later(_STALLED_S, self._look_at_reader, unread_bytes)

    def _look_at_reader(self, unread_before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread >= unread_before:
            self.transport.abort()
        else:
            self._watch_reader(unread)

    def _refuse(self, code: str, detail: str) -> None:
        """Answer a request whose head was never taken, and close once the client had the time to read it."""
        self._is_refused = True
        self._end_timers()
        if self.cycle is not None and not self.cycle.response_complete:
            # An answer to an earlier request is on its way; a second one must not be written into it.
            self.transport.close()
            return
        self.transport.write(_plain_answer(code, detail))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(_READ_REFUSAL_S, self.transport.close)

    def _end_timers(self) -> None:
        for timer in (self._head_timer, self._reader_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._reader_timer = None


def _plain_answer(code: str, detail: str) -> bytes:
    kind = PROBLEMS[code]
    problem = {
        "type": f"/problems/{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "correlation_id": new_correlation_id(),
    }
    body = orjson.dumps(problem)
    head = (
        f"HTTP/1.1 {kind.status} {HTTPStatus(kind.status).phrase}\r\ncontent-type: application/problem+json\r\n"
        f"x-correlation-id: {problem['correlation_id']}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
