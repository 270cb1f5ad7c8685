"""A short way between the edge and our own server: an ASGI extension that stands in for `receive` and `send`.

Where a whole body has come, or a whole answer can go, no messages are built and nobody waits. It does what uvicorn's
cycle would do with those messages and leaves it in the same state; only the writing waits for the end of the loop's
turn. Under another server the edge uses the messages.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.http.outgoing import Outgoing

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Names in lower case with their values, in the order they are sent."""

_EXTENSION: Final = "coatcheck.direct"
_CLOSE: Final = b"connection: close\r\n"
_TAB, _SPACE, _DEL = 0x09, 0x20, 0x7F
_ALLOWED = bytes(byte for byte in range(256) if byte == _TAB or (byte >= _SPACE and byte != _DEL))


class Direct:
    """One request and its answer."""

    __slots__ = ("_cycle", "_outgoing")

    def __init__(self, cycle: RequestResponseCycle, outgoing: Outgoing) -> None:
        self._cycle = cycle
        self._outgoing = outgoing

    def take_body(self, bytes_max: int) -> bytes | None:
        """The whole body, if it has come and has at most `bytes_max` bytes. Else None: ask `receive` for it."""
        cycle = self._cycle
        is_whole = not (cycle.more_body or cycle.waiting_for_100_continue)
        if not is_whole or cycle.disconnected or cycle.response_complete or len(cycle.body) > bytes_max:
            return None
        cycle.flow.resume_reading()
        cycle.message_event.clear()
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def answer(self, status: int, headers: RawHeaders, body: bytes, fault_point: FaultPoint) -> bool:
        """Write a whole answer, whose headers say how long it is.

        Returns False where nothing was written and `send` must be used: the client is gone or does not read.

        Raises:
            RuntimeError: a header holds a control character, which might end it and begin another.
        """
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started or cycle.flow.write_paused:
            return False
        lines = _lines([*cycle.default_headers, *headers])
        if b"\r\n" + _CLOSE in lines:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            lines += _CLOSE
        head = b"%b%b\r\n" % (STATUS_LINE[status], lines)
        if fault_point is no_fault:
            self._outgoing.write(cycle.transport, head + body)
        else:
            # Whoever waits at the fault point is to find half of an answer on its way.
            self._outgoing.flush()
            cycle.transport.write(head)
            fault_point("response-half-sent")
            cycle.transport.write(body)
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        # Spent, and left there it would be a circle of references for the garbage collector to find.
        del cycle.scope["extensions"]
        if not cycle.keep_alive:
            self._outgoing.flush()
            cycle.transport.close()
        cycle.on_response()
        return True


def offer_direct(cycle: RequestResponseCycle, outgoing: Outgoing) -> None:
    """Let the edge find the extension in the request's scope."""
    cycle.scope["extensions"] = {_EXTENSION: {"direct": Direct(cycle, outgoing)}}


def direct_of(scope: Scope) -> Direct | None:
    """The extension, where the request's server offers it."""
    extensions = scope.get("extensions")
    if not extensions or _EXTENSION not in extensions:
        return None
    direct: Direct = extensions[_EXTENSION]["direct"]
    return direct


def _lines(fields: RawHeaders) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    if lines.translate(None, _ALLOWED) != b"\r\n" * len(fields):
        raise RuntimeError("a header of an answer holds a control character")
    return lines
