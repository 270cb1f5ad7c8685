"""The listening side: bounds on slow and large clients, an orderly end, TLS."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from starlette.types import ASGIApp, Receive, Scope, Send

from coatcheck.http.connections import ConnectionLimits
from coatcheck.http.server import HttpServer, ServerOptions, ServerRefused
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until_async

LIMITS = ConnectionLimits(connections_max=100, headers_bytes_max=4096, headers_timeout_s=30, keep_alive_s=30)
HURRIED = replace(LIMITS, headers_timeout_s=0.05)
OPTIONS = ServerOptions("127.0.0.1", 0, LIMITS)
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(10):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def answer(self) -> bytes:
        """One answer with a Content-Length."""
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return head + await self.reader.readexactly(length)


Connect = Callable[[], Coroutine[Any, Any, Client]]


@asynccontextmanager
async def served(
    app: ASGIApp, options: ServerOptions = OPTIONS, trust: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[HttpServer, Connect, Metrics]]:
    metrics = Metrics()
    server = HttpServer(options, metrics, SystemClock())
    server.bind()
    await server.start(app)
    port = int(server.url.rpartition(":")[2])
    clients: list[Client] = []

    async def connect() -> Client:
        host = "localhost" if trust else None
        client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=host))
        clients.append(client)
        return client

    try:
        yield server, connect, metrics
    finally:
        await server.abort()
        for client in clients:
            client.writer.transport.abort()


async def test_it_answers_without_naming_itself() -> None:
    async with served(ok) as (_, connect, _metrics):
        client = await connect()
        client.send(GET + GET)
        for _ in range(2):
            answer = await client.answer()
            assert answer.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
            assert b"server:" not in answer.lower()


async def test_a_client_that_says_nothing_is_let_go() -> None:
    async with served(ok, replace(OPTIONS, limits=HURRIED)) as (_, connect, _metrics):
        assert await (await connect()).rest() == b""


@pytest.mark.parametrize("start", [b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ", GET + b"GET / HTTP/1.1\r\n"])
async def test_headers_that_take_too_long_are_answered_408(start: bytes) -> None:
    async with served(ok, replace(OPTIONS, limits=HURRIED)) as (_, connect, _metrics):
        client = await connect()
        client.send(start)
        answer = await client.rest()
        head, _, body = answer.removeprefix(b"").rpartition(b"\r\n\r\n")
        assert b"HTTP/1.1 408 Request Timeout" in head
        problem = json.loads(body)
        assert problem["code"] == "request-timeout"
        assert problem["correlation_id"].encode() in head


async def test_bytes_that_begin_no_request_do_not_hold_a_connection() -> None:
    async with served(ok, replace(OPTIONS, limits=HURRIED)) as (_, connect, _metrics):
        client = await connect()
        client.send(GET)
        await client.answer()
        client.send(b"\r\n")
        assert await client.rest() == b""


async def test_headers_too_large_are_answered_431_whether_they_end_or_not() -> None:
    async with served(ok) as (_, connect, _metrics):
        for end in (b"\r\n\r\n", b""):
            client = await connect()
            client.send(b"GET / HTTP/1.1\r\nhost: x\r\n")
            for number in range(8):
                client.send(b"x-%d: " % number + b"a" * 1000 + b"\r\n")
                await client.writer.drain()
            client.send(end)
            answer = await client.rest()
            assert answer.startswith(b"HTTP/1.1 431 ")
            assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["code"] == "headers-too-large"


def head_of(size: int) -> bytes:
    """A request's line and headers, as many bytes as this."""
    line = b"POST /reports?page=2 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nx-filler: "
    return line + b"a" * (size - len(line) - 2) + b"\r\n"


@pytest.mark.parametrize("step", [10_000, 1, 2, 1500, LIMITS.headers_bytes_max, LIMITS.headers_bytes_max + 1])
@pytest.mark.parametrize(("over", "status"), [(0, b"200"), (1, b"431")])
async def test_a_head_is_measured_to_the_byte_in_whatever_parts_it_comes(step: int, over: int, status: bytes) -> None:
    request = head_of(LIMITS.headers_bytes_max + over) + b"\r\n{}"
    async with served(ok) as (_, connect, _metrics):
        client = await connect()
        for start in range(0, len(request), step):
            client.send(request[start : start + step])
            # Another turn of the loop, in which the server reads it.
            await asyncio.sleep(0)
        assert (await client.answer()).startswith(b"HTTP/1.1 " + status)


async def test_a_body_is_not_counted_as_headers() -> None:
    async def echo_length(scope: Scope, receive: Receive, send: Send) -> None:
        length, has_more = 0, True
        while has_more:
            message = await receive()
            length, has_more = length + len(message["body"]), message["more_body"]
        assert length == 50_000
        await ok(scope, receive, send)

    async with served(echo_length) as (_, connect, _metrics):
        client = await connect()
        request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n\r\n" + b"a" * 50_000
        client.send(request + request)
        for _ in range(2):
            assert (await client.answer()).startswith(b"HTTP/1.1 200")


async def test_the_longest_idle_connection_makes_room_and_busy_ones_stay() -> None:
    let_go = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await let_go.wait()
        await ok(scope, receive, send)

    limits = replace(LIMITS, connections_max=3)
    async with served(slow, replace(OPTIONS, limits=limits)) as (_, connect, metrics):
        busy, idle = await connect(), await connect()
        busy.send(GET)
        await wait_until_async(lambda: metrics.read("http_connections") == 2, "both connections")
        others = [await connect() for _ in range(2)]
        assert await idle.rest() == b""
        assert metrics.read("http_connections") == 3
        let_go.set()
        assert (await busy.answer()).startswith(b"HTTP/1.1 200")
        assert len(others) == 2


async def test_a_client_that_does_not_read_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.http.connection._STALLED_S", 0.05)
    size = 64 * 1024 * 1024

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": bytes(size)})

    async with served(large) as (_, connect, metrics):
        client = await connect()
        await wait_until_async(lambda: metrics.read("http_connections") == 1, "the connection")
        # Nobody reads: the stream's buffer fills, then the kernel's, then the server's.
        client.send(GET)
        await wait_until_async(lambda: metrics.read("http_connections") == 0, "the server to give up")


async def test_close_lets_answers_end_and_closes_idle_connections() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await let_go.wait()
        await ok(scope, receive, send)

    async with served(slow) as (server, connect, _metrics):
        idle, busy = await connect(), await connect()
        busy.send(GET)
        await asked.wait()
        closing = asyncio.create_task(server.close(linger_s=10))
        assert await idle.rest() == b""
        let_go.set()
        assert b"connection: close" in await busy.rest()
        await closing
        with pytest.raises(OSError, match=r"refused|failed"):
            await connect()


async def test_close_aborts_what_does_not_end() -> None:
    asked = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with served(endless) as (server, connect, _metrics):
        client = await connect()
        client.send(GET)
        await asked.wait()
        await server.close(linger_s=0.01)
        assert await client.rest() == b""


async def test_a_taken_port_is_refused_in_one_sentence() -> None:
    async with served(ok) as (server, _, _metrics):
        port = int(server.url.rpartition(":")[2])
        other = HttpServer(replace(OPTIONS, port=port), Metrics(), SystemClock())
        with pytest.raises(ServerRefused, match=r"cannot listen on .*address already in use"):
            other.bind()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> ServerOptions:
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    return replace(OPTIONS, tls_cert=tmp_path / "server.pem")


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_tls_is_served(authority: trustme.CA, tls: ServerOptions) -> None:
    async with served(ok, tls, trusting(authority)) as (server, connect, _metrics):
        assert server.url.startswith("https://")
        client = await connect()
        client.send(GET)
        assert (await client.answer()).startswith(b"HTTP/1.1 200")


async def test_a_client_without_the_right_certificate_gets_nothing(
    authority: trustme.CA, tls: ServerOptions, tmp_path: Path
) -> None:
    clients = trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    known = trusting(authority)
    clients.issue_cert("shop@example.org").configure_cert(known)
    options = replace(tls, tls_client_ca=tmp_path / "clients.pem")
    async with served(ok, options, known) as (_, connect, _metrics):
        client = await connect()
        client.send(GET)
        assert (await client.answer()).startswith(b"HTTP/1.1 200")
    async with served(ok, options, trusting(authority)) as (_, connect, _metrics):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            await _first_byte(connect)


async def _first_byte(connect: Connect) -> bytes:
    client = await connect()
    client.send(GET)
    return await client.reader.readexactly(1)


async def test_files_that_are_no_certificates_are_refused(tls: ServerOptions, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for options in (replace(tls, tls_cert=tmp_path / "no.pem"), replace(tls, tls_client_ca=tmp_path / "no.pem")):
        server = HttpServer(options, Metrics(), SystemClock())
        server.bind()
        with pytest.raises(ServerRefused, match="tls_"):
            await server.start(ok)
        await server.abort()
