"""The short way to our own server says and leaves what ASGI's messages do."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from coatcheck.core.faults import no_fault
from coatcheck.http.connections import ConnectionLimits, Connections
from coatcheck.http.direct import Cycle, take_direct
from coatcheck.http.exchange import Exchange
from coatcheck.http.outgoing import Outgoing
from coatcheck.http.server import HttpServer, ServerOptions
from coatcheck.observe.metrics import Metrics
from coatcheck.testing.clock import ManualClock

_BODY = b'{"a": 1}'
_POST = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n" + _BODY


def _request(method: bytes, path: bytes, version: bytes = b"1.1", *headers: bytes) -> bytes:
    return b"\r\n".join([b"%b /%b HTTP/%b" % (method, path, version), b"Host: x", *headers, b"", b""])


class _Edge:
    """Answers as the edge does: the path says how. `direct_count` counts the answers that went the short way."""

    def __init__(self, is_offered: bool) -> None:
        self._is_offered = is_offered
        self.bodies: list[bytes | None] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_offered:
            scope = {name: value for name, value in scope.items() if name != "extensions"}
        exchange = Exchange(scope, receive, send, {})
        assert (exchange.direct is not None) is self._is_offered
        exchange.correlation_id, exchange.fault_point = "c-1", no_fault
        if exchange.method == "POST":
            whole = None if exchange.direct is None else exchange.direct.take_body(100)
            self.bodies.append(whole if whole is not None else (await receive())["body"])
        match scope["path"]:
            case "/empty":
                await exchange.answer_empty(304, [(b"etag", b'"v1"')])
            case "/close":
                await exchange.answer(400, b"text/plain", b"no", [(b"connection", b"close")])
            case path:
                await exchange.answer_json(202, b"%b!" % path.encode(), [(b"location", b"/x\xff")])


@asynccontextmanager
async def _served(app: ASGIApp, keep_alive_s: float = 5.0) -> AsyncIterator[int]:
    options = ServerOptions("127.0.0.1", 0, ConnectionLimits(100, 16_384, 5.0, keep_alive_s))
    server = HttpServer(options, Metrics(), ManualClock())
    server.bind()
    await server.start(app)
    try:
        yield int(server.url.rpartition(":")[2])
    finally:
        await server.abort()


async def _said(port: int, sent: bytes) -> bytes:
    """All that the server says to `sent`, until it or the client has nothing more to say."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent + _request(b"GET", b"last", b"1.1", b"Connection: close"))
    async with asyncio.timeout(10):
        said = await reader.read()
    writer.close()
    await writer.wait_closed()
    return said


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        _request(b"GET", b"a") + _request(b"GET", b"b"),
        _request(b"HEAD", b"a"),
        _request(b"GET", b"empty"),
        _request(b"HEAD", b"empty"),
        _request(b"GET", b"close"),
        _request(b"GET", b"old", b"1.0"),
        _request(b"GET", b"old", b"1.0", b"Connection: keep-alive"),
        _POST % b"a" + _POST % b"empty" + _request(b"GET", b"b"),
        _request(b"POST", b"c", b"1.1", b"Transfer-Encoding: chunked") + b"8\r\n" + _BODY + b"\r\n0\r\n\r\n",
    ],
    ids=["one", "two", "head", "304", "head-304", "close", "1.0", "1.0-keep-alive", "bodies", "chunks"],
)
async def test_both_ways_put_the_same_on_the_wire(sent: bytes) -> None:
    short, long = _Edge(is_offered=True), _Edge(is_offered=False)
    async with _served(short) as short_port, _served(long) as long_port:
        assert await _said(short_port, sent) == await _said(long_port, sent)
    assert short.bodies == long.bodies
    assert set(short.bodies) <= {_BODY}


async def test_a_request_leaves_no_circle_of_references() -> None:
    async with _served(_Edge(is_offered=True)) as port:
        await _said(port, _POST % b"a")
        gc.collect()
        gc.disable()
        try:
            await _said(port, _POST % b"a" * 100)
            assert gc.collect() < 100
        finally:
            gc.enable()


class _Cycle(Cycle):
    """A cycle on a connection that notes what is written to it."""

    def __init__(self, **changes: Any) -> None:
        self.written: list[bytes] = []
        transport = SimpleNamespace(
            write=self.written.append, close=lambda: self.written.append(b"closed"), is_closing=lambda: False
        )
        connection = SimpleNamespace(
            transport=transport,
            flow=SimpleNamespace(write_paused=False, resume_reading=lambda: None),
            server_state=SimpleNamespace(default_headers=[(b"date", b"now")]),
            parser=SimpleNamespace(
                get_http_version=lambda: "1.1", get_method=lambda: b"GET", should_keep_alive=lambda: True
            ),
            url=b"/",
            headers=[],
            scheme="http",
            server=None,
            client=None,
            expect_100_continue=False,
            on_response_complete=lambda: None,
        )
        super().__init__(cast("HttpToolsProtocol", connection), Outgoing())
        self.more_body = False
        self.body = bytearray(_BODY)
        for name, value in changes.items():
            setattr(self, name, value)


def _answer(cycle: Cycle, *headers: tuple[bytes, bytes]) -> bool:
    return cycle.answer(200, headers, b"yes", no_fault)


async def _end_of_turn() -> None:
    await asyncio.sleep(0)


async def test_an_answer_is_one_write_at_the_end_of_the_turn() -> None:
    cycle = _Cycle()
    assert _answer(cycle, (b"etag", b"x"))
    assert cycle.written == []
    await _end_of_turn()
    assert cycle.written == [b"HTTP/1.1 200 OK\r\ndate: now\r\netag: x\r\n\r\nyes"]
    assert cycle.response_complete
    assert cycle.message_event.is_set()


@pytest.mark.parametrize(
    "changes",
    [{"disconnected": True}, {"response_started": True}, {"flow": SimpleNamespace(write_paused=True)}],
    ids=["gone", "begun", "does-not-read"],
)
def test_what_cannot_go_at_once_is_left_to_the_messages(changes: dict[str, Any]) -> None:
    cycle = _Cycle(**changes)
    assert not _answer(cycle)
    assert cycle.written == []
    assert not cycle.response_complete


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb: c", b"a\rb", b"a\x00b", b"\x7f", b"a\r\n\r\n<html>"])
def test_no_value_can_end_its_header(value: bytes) -> None:
    cycle = _Cycle()
    with pytest.raises(RuntimeError, match="control character"):
        _answer(cycle, (b"location", value))
    assert cycle.written == []
    assert not cycle.response_started


async def test_a_value_that_looks_like_a_header_closes_nothing() -> None:
    cycle = _Cycle()
    assert _answer(cycle, (b"x", b"connection: close"))
    await _end_of_turn()
    assert len(cycle.written) == 1
    assert b"closed" not in cycle.written


async def test_a_connection_that_is_not_kept_is_closed_after_its_answer() -> None:
    cycle = _Cycle(keep_alive=False)
    assert _answer(cycle)
    assert [text[:8] for text in cycle.written] == [b"HTTP/1.1", b"closed"]


async def test_what_a_client_is_told_in_one_turn_stays_in_order() -> None:
    outgoing, cycle = Outgoing(), _Cycle()
    outgoing.write(cycle.transport, b"first")
    outgoing.write(cycle.transport, b"second")
    outgoing.flush()
    await _end_of_turn()
    assert cycle.written == [b"first", b"second"]


async def _answer_and_stand_still(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer, and keep the loop from its next turn until the connection has been idle for too long."""
    direct, loop = take_direct(scope), asyncio.get_running_loop()
    assert direct is not None
    assert direct.answer(200, [(b"content-length", b"3")], b"yes", no_fault)
    until_s = loop.time() + 0.05
    while loop.time() < until_s:
        pass


def test_an_answer_goes_before_its_connection_is_closed_for_idleness() -> None:
    async def said() -> bytes:
        async with _served(_answer_and_stand_still, keep_alive_s=0.01) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_request(b"GET", b"a"))
            async with asyncio.timeout(10):
                everything = await reader.read()
            writer.close()
            await writer.wait_closed()
            return everything

    # As in production: this loop looks at its timers before it runs what was to be run soon.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(said()).endswith(b"\r\n\r\nyes")


class _Transport(asyncio.Transport):
    """Notes what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[bytes] = []

    def write(self, data: Any) -> None:
        self.done.append(data)

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.done.append(b"aborted")


async def test_an_answer_goes_before_its_connection_makes_room_for_another() -> None:
    connections = Connections(ConnectionLimits(1, 16_384, 5.0, 5.0), Metrics())
    first = _Transport()
    connections.add(first)
    connections.outgoing.write(first, b"answer")
    connections.add(_Transport())
    assert first.done == [b"answer", b"aborted"]


async def test_nothing_is_written_to_a_connection_that_is_gone() -> None:
    outgoing, written = Outgoing(), list[bytes]()
    gone = SimpleNamespace(write=written.append, is_closing=lambda: True)
    outgoing.write(cast("asyncio.Transport", gone), b"answer")
    await _end_of_turn()
    assert written == []


@pytest.mark.parametrize(
    "changes",
    [{"more_body": True}, {"waiting_for_100_continue": True}, {"disconnected": True}, {"body": bytearray(101)}],
    ids=["more-to-come", "waits-for-leave", "gone", "large"],
)
def test_a_body_that_is_not_there_as_a_whole_is_asked_for(changes: dict[str, Any]) -> None:
    cycle = _Cycle(**changes)
    before = bytes(cycle.body)
    assert cycle.take_body(100) is None
    assert bytes(cycle.body) == before


async def test_half_of_an_answer_is_on_its_way_at_the_fault_point() -> None:
    cycle, seen = _Cycle(), []
    assert cycle.answer(200, [], b"yes", lambda name: seen.append((name, len(cycle.written))))
    assert seen == [("response-half-sent", 1)]
    assert len(cycle.written) == 2
