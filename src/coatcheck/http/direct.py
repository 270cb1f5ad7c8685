"""A short way between the edge and our own server: an ASGI extension that stands in for `receive` and `send`.

Where a whole body has come, or a whole answer can go, no messages are built and nobody waits. It does what uvicorn's
cycle would do with those messages and leaves it in the same state; only the writing waits for the end of the loop's
turn. Under another server the edge uses the messages.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import unquote

import httptools
from starlette.types import Scope
from uvicorn._types import ASGIVersions, HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.http.outgoing import Outgoing

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Names in lower case with their values, in the order they are sent."""

_EXTENSION: Final = "coatcheck.direct"
_ASGI: Final[ASGIVersions] = {"spec_version": "2.3", "version": "3.0"}
_CLOSE: Final = b"connection: close\r\n"
_TAB, _SPACE, _DEL = 0x09, 0x20, 0x7F
_ALLOWED = bytes(byte for byte in range(256) if byte == _TAB or (byte >= _SPACE and byte != _DEL))


class Cycle(RequestResponseCycle):
    """uvicorn's cycle of one request and its answer, with the short way.

    What most requests never change stands in the class, so that a cycle is quickly made.
    """

    logger = access_logger = logging.getLogger("uvicorn.error")
    access_log = False
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0

    def __init__(self, connection: HttpToolsProtocol, outgoing: Outgoing) -> None:
        self.scope = _scope_of(connection)
        self.transport = connection.transport
        self.flow = connection.flow
        self.default_headers = connection.server_state.default_headers
        self.keep_alive = connection.parser.should_keep_alive() and self.scope["http_version"] != "1.0"
        self.waiting_for_100_continue = connection.expect_100_continue
        self.on_response = connection.on_response_complete
        self.message_event = asyncio.Event()
        self.body = bytearray()
        self._outgoing = outgoing

    def offer(self) -> None:
        """Offer the extension to whoever is going to answer now."""
        self.scope["extensions"] = {_EXTENSION: {"direct": self}}

    def take_body(self, bytes_max: int) -> bytes | None:
        """The whole body, if it has come and has at most `bytes_max` bytes. Else None: ask `receive` for it."""
        is_whole = not (self.more_body or self.waiting_for_100_continue)
        if not is_whole or self.disconnected or self.response_complete or len(self.body) > bytes_max:
            return None
        self.flow.resume_reading()
        self.message_event.clear()
        body, self.body = bytes(self.body), bytearray()
        return body

    def answer(self, status: int, headers: RawHeaders, body: bytes, fault_point: FaultPoint) -> bool:
        """Write a whole answer, whose headers say how long it is.

        Returns False where nothing was written and `send` must be used: the client is gone or does not read.

        Raises:
            RuntimeError: a header holds a control character, which might end it and begin another.
        """
        if self.disconnected or self.response_started or self.flow.write_paused:
            return False
        lines = _lines([*self.default_headers, *headers])
        if b"\r\n" + _CLOSE in lines:
            self.keep_alive = False
        elif not self.keep_alive:
            lines += _CLOSE
        head = b"%b%b\r\n" % (STATUS_LINE[status], lines)
        if fault_point is no_fault:
            self._outgoing.write(self.transport, head + body)
        else:
            # Whoever waits at the fault point is to find half of an answer on its way.
            self._outgoing.flush()
            self.transport.write(head)
            fault_point("response-half-sent")
            self.transport.write(body)
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self._outgoing.flush()
            self.transport.close()
        self.on_response()
        return True


def take_direct(scope: Scope) -> Cycle | None:
    """The extension, where the request's server offers it. It can be had once: left in the scope, which its cycle
    holds, it would be a circle of references for the garbage collector to find."""
    extensions = scope.get("extensions")
    offered = extensions.pop(_EXTENSION, None) if extensions else None
    if offered is None:
        return None
    direct: Cycle = offered["direct"]
    return direct


def _scope_of(connection: HttpToolsProtocol) -> HTTPScope:
    """The request's head as ASGI has it."""
    url = httptools.parse_url(connection.url)
    path = url.path.decode("ascii")
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": connection.parser.get_http_version(),
        "method": connection.parser.get_method().decode("ascii"),
        "scheme": connection.scheme or "http",
        "server": connection.server,
        "client": connection.client,
        "root_path": "",
        "path": unquote(path) if "%" in path else path,
        "raw_path": url.path,
        "query_string": url.query or b"",
        "headers": connection.headers,
    }


def _lines(fields: RawHeaders) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    if lines.translate(None, _ALLOWED) != b"\r\n" * len(fields):
        raise RuntimeError("a header of an answer holds a control character")
    return lines
