"""One client's connection, with the bounds uvicorn leaves open.

Headers must come within a time and a size, an answer must be read at some speed, and of requests sent ahead only a few
are read before their turn. What means two things is no request. So no client costs another anything.
"""

import asyncio
import re
from typing import Final, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from coatcheck.core import limits
from coatcheck.http.connections import Connections
from coatcheck.http.direct import Cycle
from coatcheck.http.early_answers import early_answer, unreadable_answer
from coatcheck.http.patience import stood_still

_STALLED_S = 30.0
_READ_BYTES_MIN: Final = 16 * 1024
_READ_REFUSAL_S = 1.0
_PIECE_BYTES: Final = 4096
_HEADER_OVERHEAD_BYTES: Final = len(b": \r\n")
_LINE_OVERHEAD_BYTES: Final = len(b"  HTTP/1.1\r\n")
_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*")


class Intake(FlowControl):
    """Reads nothing more while it is full, whoever asks for more."""

    is_full = False

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with the bounds of `connections`."""

    def __init__(
        self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop, connections: Connections
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._connections = connections
        self.url = b""
        self.flow: Intake
        self.cycle: Cycle
        self._unparsed = memoryview(b"")
        self._answering: RequestResponseCycle | None = None
        self._refusal: bytes | None = None
        self._is_message_open = self._is_head_open = False
        self._head_bytes = self._idle_bytes = 0
        self._hosts: list[bytes] = []
        self._codings: list[bytes] = []
        self._lengths: list[bytes] = []
        self._is_resuming = False
        self._idle_since_s: float | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self.flow = Intake(self.transport)
        self._connections.add(self.transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head_timer()
        self._end_reader_timer()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._unparsed = memoryview(b"")
        self._connections.remove(self.transport)
        if self._answering is not None:
            _end(self._answering)
        for cycle, _ in self.pipeline:
            # Nobody begins with it any more: what is left would be a circle of references.
            cycle.on_response = _do_nothing
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is None:
            self._unparsed = memoryview(bytes(self._unparsed) + data if self._unparsed else data)
            self._parse()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._end_reader_timer()
        super().resume_writing()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._is_resuming:
            return
        self._is_message_open = self._is_head_open = True
        self._head_bytes = self._idle_bytes = 0
        self._hosts, self._codings, self._lengths = [], [], []
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_url(self, url: bytes) -> None:
        if not self._is_resuming:
            self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head_open:
            # A trailer field: nothing here reads one, and it must not pass for a header (RFC 9110, section 6.5.1).
            return
        self._head_bytes += len(name) + len(value) + _HEADER_OVERHEAD_BYTES
        name = name.lower()
        match name:
            case b"host":
                self._hosts.append(value.strip(b" \t"))
            case b"transfer-encoding":
                self._codings.append(value.strip(b" \t").lower())
            case b"content-length":
                self._lengths.append(value)
            case b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._refusal is not None or self._is_resuming:
            return
        # The whole line: what is measured while a head comes in parts is measured in whole bytes, too.
        line_bytes = len(self.parser.get_method()) + len(self.url) + _LINE_OVERHEAD_BYTES
        self._check_head_bytes(line_bytes + self._head_bytes)
        self._check_framing()
        if self._refusal is not None:
            return
        self._idle_bytes = 0
        self._end_head_timer()
        cycle = Cycle(self, self._connections.outgoing)
        self.cycle = cycle
        if self._is_answering:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))
        else:
            self._connections.set_awaited(self.transport)
            self._start_asgi_task(cycle, self.app)
        self._is_head_open = False

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        cycle = self.cycle
        if self._refusal is None and not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade() and (self._codings or self._lengths):
            # See _resume: the body is still to come.
            return
        self._is_message_open = False
        if self._refusal is None:
            self._connections.set_busy(self.transport)
            if not self.cycle.response_complete:
                self.cycle.more_body = False
                self.cycle.message_event.set()

    # Called by uvicorn

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        cast("Cycle", cycle).offer()
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal is not None:
            self._send_refusal()
            return
        else:
            self._await_request()
        if not self._is_answering or self._is_message_open:
            self._connections.set_awaited(self.transport)
        if self._unparsed or self.flow.is_full:
            self._parse()
        self.flow.resume_reading()

    # Bounds

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    def _parse(self) -> None:
        """Parse what has come, piece by piece, until a request waits for its turn; then let the client wait, too."""
        if self._unparsed:
            self._idle_since_s = None
        while self._unparsed and not self.pipeline and self._refusal is None:
            piece, self._unparsed = self._unparsed[:_PIECE_BYTES], self._unparsed[_PIECE_BYTES:]
            self._parse_piece(piece)
        self._set_full(bool(self.pipeline or self._unparsed))

    def _parse_piece(self, piece: memoryview) -> None:
        self._idle_bytes += len(piece) if self._is_message_open else 0
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._resume(piece[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(unreadable_answer(self.server_state.default_headers))
        if self._is_head_open or self._is_between_requests:
            self._await_head()
        if self._is_message_open:
            self._check_head_bytes(max(len(self.url) + self._head_bytes, self._idle_bytes))

    def _resume(self, rest: memoryview) -> None:
        """Go on after an offer to speak something else, which is not taken (RFC 9110, section 7.8).

        The parser takes all that follows for the other protocol, a body too. Another parser is told to expect it.
        """
        self._unparsed = memoryview(bytes(rest) + bytes(self._unparsed))
        if not self._is_message_open:
            return
        framing = [b"Content-Length: " + length for length in self._lengths]
        framing += [b"Transfer-Encoding: " + coding for coding in self._codings]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._is_resuming = True
        self.parser.feed_data(b"\r\n".join([b"POST / HTTP/1.1", *framing, b"", b""]))
        self._is_resuming = False

    def _await_request(self) -> None:
        """Keep the connection for another request. Its timer is left to run when one comes, and looks then."""
        self._idle_since_s = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self._connections.limits.keep_alive_s, self._look_at_idleness)

    def _look_at_idleness(self) -> None:
        timer, self._idle_timer = self._idle_timer, None
        if self._idle_since_s is None:
            return
        if timer is not None and stood_still(self.loop, timer.when()):
            self._idle_timer = self.loop.call_later(limits.STANDSTILL_GRACE_S, self._look_at_idleness)
            return
        left_s = self._idle_since_s + self._connections.limits.keep_alive_s - self.loop.time()
        if left_s <= 0:
            # Where everything stood still, the answer before this idleness may not have gone yet.
            self._connections.outgoing.flush()
            self.transport.close()
        else:
            self._idle_timer = self.loop.call_later(left_s, self._look_at_idleness)

    @property
    def _is_between_requests(self) -> bool:
        """Whether no answer is due and nothing limits the wait: after bytes that begin no request."""
        return not self._is_answering and self._idle_since_s is None

    def _set_full(self, is_full: bool) -> None:
        self.flow.is_full = is_full
        if is_full:
            self.flow.pause_reading()

    def _check_head_bytes(self, head_bytes: int) -> None:
        bytes_max = self._connections.limits.headers_bytes_max
        if head_bytes > bytes_max:
            self._refuse_for("headers-too-large", f"Send at most {bytes_max} bytes of request line and headers.")

    def _check_framing(self) -> None:
        """Refuse what may end elsewhere, or go to somebody else, in another server's eyes (RFC 9112, 3.2 and 6.1)."""
        hosts, codings = self._hosts, self._codings
        if codings and (self.parser.get_http_version() == "1.0" or codings != [b"chunked"]):
            self._refuse_for("invalid-header", "Transfer-Encoding must be chunked and nothing else, in HTTP/1.1.")
        elif len(hosts) != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._refuse_for("invalid-header", "Host must stand in the request exactly once.")
        elif hosts and _HOST.fullmatch(hosts[0]) is None:
            self._refuse_for("invalid-header", "Host must be the name or address of a host, with or without a port.")

    def _await_head(self) -> None:
        if self._head_timer is None and self._refusal is None:
            timeout_s = self._connections.limits.headers_timeout_s
            self._head_timer = self.loop.call_later(timeout_s, self._head_timed_out)

    def _head_timed_out(self) -> None:
        timer, self._head_timer = self._head_timer, None
        if timer is not None and stood_still(self.loop, timer.when()):
            self._head_timer = self.loop.call_later(limits.STANDSTILL_GRACE_S, self._head_timed_out)
        elif self._is_head_open:
            self._refuse_for("request-timeout", "The request's headers took too long.")
        else:
            self.transport.close()

    def _watch_reader(self, unread_bytes: int) -> None:
        """Give up a client that takes next to nothing of its answer: what it does not read stands in our memory."""
        self._reader_timer = self.loop.call_later(_STALLED_S, self._look_at_reader, unread_bytes)

    def _look_at_reader(self, unread_before: int) -> None:
        timer, unread = self._reader_timer, self.transport.get_write_buffer_size()
        if timer is not None and stood_still(self.loop, timer.when()):
            self._watch_reader(unread)
        elif unread > unread_before - _READ_BYTES_MIN:
            self.transport.abort()
        else:
            self._watch_reader(unread)

    # Refusals

    def _refuse_for(self, code: str, detail: str) -> None:
        if self._refusal is None:
            self._refuse(early_answer(code, detail, self.server_state.default_headers))

    def _refuse(self, answer: bytes) -> None:
        """Take nothing more; once every request before this one has its answer, give this one and close."""
        self._refusal = answer
        self._end_head_timer()
        self._unparsed = memoryview(b"")
        if self._is_message_open and not self._is_head_open:
            self._forget(self.cycle)
        if self._is_answering:
            self._set_full(True)
        else:
            self._send_refusal()

    def _forget(self, cycle: RequestResponseCycle) -> None:
        """The rest of this request's body will not come. Where it is being answered already, nothing can be added."""
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
        elif cycle.response_started:
            self._refusal = b""
        else:
            _end(cycle)
            self._answering = None

    def _send_refusal(self) -> None:
        """Answer, and close once the client had the time to read it; what it sends until then is forgotten."""
        self._idle_since_s = None
        self._set_full(False)
        self.flow.resume_reading()
        # It must not overtake an answer that is on its way.
        self._connections.outgoing.flush()
        self.transport.write(self._refusal or b"")
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._head_timer = self.loop.call_later(_READ_REFUSAL_S, self.transport.close)

    def _end_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None


def _do_nothing() -> None:
    """Nobody waits for this response."""


def _end(cycle: RequestResponseCycle) -> None:
    """Let whoever answers the request know that its client is gone."""
    cycle.disconnected = True
    cycle.message_event.set()
