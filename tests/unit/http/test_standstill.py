"""A process that stood still reads what came meanwhile before it calls anybody late."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from coatcheck.core import limits
from coatcheck.http import connection as connection_module
from coatcheck.http.connections import ConnectionLimits
from coatcheck.http.patience import patient
from coatcheck.http.server import HttpServer, ServerOptions
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock

PATIENCE_S = 0.1
STILL_S = 0.3
HOST = b"Host: x\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 6\r\n\r\n"
LONG_BYTES = 8_000_000


@pytest.fixture(autouse=True)
def short_standstills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STANDSTILL_S", 0.05)
    monkeypatch.setattr(limits, "STANDSTILL_GRACE_S", 0.2)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """As in production: this loop looks at its timers before its sockets."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def stand_still(meanwhile: Callable[[], object] = lambda: None) -> None:
    """What a stopped process does: it stops in the midst of looking at its sockets, and goes on with its timers."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    has_stood = loop.create_future()

    def stop() -> None:
        loop.remove_reader(ours)
        meanwhile()
        until_s = loop.time() + STILL_S
        while loop.time() < until_s:
            pass
        has_stood.set_result(None)

    with ours, theirs:
        loop.add_reader(ours, stop)
        theirs.send(b"x")
        await has_stood


class Client:
    """A raw connection: what it sends is on its way at once."""

    def __init__(self, plug: socket.socket) -> None:
        self._plug = plug
        self.heard = b""

    def say(self, words: bytes) -> None:
        self._plug.sendall(words)

    async def hear(self, end: bytes) -> bytes:
        """All that comes, up to an end; or less, if the server hangs up before."""
        while end not in self.heard:
            piece = await asyncio.get_running_loop().sock_recv(self._plug, 1_000_000)
            if not piece:
                break
            self.heard += piece
        before, found, self.heard = self.heard.partition(end)
        return before + found


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Say how much came, in time or not; or a great deal."""
    size = 0
    try:
        async with patient(PATIENCE_S):
            while (message := await receive()).get("more_body"):
                size += len(message["body"])
            size += len(message["body"])
        text = b"%d bytes" % size
    except TimeoutError:
        text = b"late"
    text = b"x" * LONG_BYTES if scope["path"] == "/long" else text
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


@asynccontextmanager
async def connected() -> AsyncIterator[Client]:
    options = ServerOptions("127.0.0.1", 0, ConnectionLimits(10, 16_384, PATIENCE_S, PATIENCE_S))
    server = HttpServer(options, Metrics(), SystemClock())
    server.bind()
    await server.start(answer)
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as plug:
        plug.setblocking(False)
        try:
            async with asyncio.timeout(10):
                yield Client(plug)
        finally:
            await server.abort()


async def let_it_be_read() -> None:
    """Some turns of the loop, which is what the server needs to read what has come."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("first", "rest", "end"),
    [
        (GET[:9], GET[9:], b"0 bytes"),
        (POST[:9], POST[9:] + b"abcdef", b"6 bytes"),
        (POST + b"abc", b"def", b"6 bytes"),
        (POST, b"abcdef", b"6 bytes"),
    ],
    ids=["a head", "the head of a body", "half a body", "a body"],
)
def test_what_came_meanwhile_is_not_late(first: bytes, rest: bytes, end: bytes) -> None:
    async def heard() -> bytes:
        async with connected() as client:
            client.say(first)
            await let_it_be_read()
            await stand_still(lambda: client.say(rest))
            return await client.hear(b"bytes")

    assert run(heard()).endswith(end)


def test_a_request_that_came_meanwhile_is_answered_and_not_hung_up_on() -> None:
    async def heard() -> bytes:
        async with connected() as client:
            client.say(GET)
            await client.hear(b"bytes")
            await stand_still(lambda: client.say(GET))
            return await client.hear(b"bytes")

    assert run(heard()).endswith(b"0 bytes")


@pytest.mark.parametrize(("sent", "end"), [(GET[:9], b" 408 "), (POST + b"abc", b"late")], ids=["a head", "a body"])
def test_what_does_not_come_is_late_after_a_standstill_too(sent: bytes, end: bytes) -> None:
    async def heard() -> bytes:
        async with connected() as client:
            client.say(sent)
            await let_it_be_read()
            await stand_still()
            return await client.hear(end)

    assert run(heard()).endswith(end)


def test_a_reader_is_not_given_up_for_a_time_in_which_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_STALLED_S", PATIENCE_S)

    async def heard() -> bytes:
        async with connected() as client:
            client.say(b"GET /long HTTP/1.1\r\n" + HOST + b"\r\n")
            await client.hear(b"\r\n\r\n")
            await stand_still()
            return await client.hear(b"x" * LONG_BYTES)

    assert len(run(heard())) == LONG_BYTES
