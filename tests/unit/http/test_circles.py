"""Whatever a client does, its connection leaves nothing behind that only the garbage collector finds.

That one is made to look rarely: what is left would add up until it does.
"""

import asyncio
import gc
from pathlib import Path

import pytest
import uvloop
from http_site import Site, open_site

from coatcheck.http.connections import ConnectionLimits
from coatcheck.http.server import HttpServer, ServerOptions
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until_async

OPTIONS = ServerOptions("127.0.0.1", 0, ConnectionLimits(100, 16_384, 30.0, 30.0))
CONNECTIONS = 30
HOST = b"Host: x\r\n"
JSON = b"Content-Type: application/json\r\n"
POST = b"POST /reports HTTP/1.1\r\n" + HOST + JSON
GET = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
REPORT = b'{"branch":"leeds"}'


def post(body: bytes, *headers: bytes) -> bytes:
    return POST + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def get(path: str, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET %b HTTP/1.1" % path.encode(), b"Host: x", *headers, b"", b""])


KINDS = {
    "a whole request": GET,
    "a job": post(REPORT),
    "a fault": post(b"[1"),
    "nothing there": get("/nothing"),
    "half a head": GET[:20],
    "half a body": post(REPORT)[:-5],
    "a body in chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n12\r\n" + REPORT + b"\r\n0\r\n\r\n",
    "no request": b"NONSENSE\r\n\r\n",
    "many ahead": GET * 50,
    "a wait": get("{job}", b"Prefer: wait=1"),
    "many behind a wait": get("{job}", b"Prefer: wait=1") + GET * 5,
    "a stream": get("{job}", b"Accept: text/event-stream"),
    "a long page": get("/openapi.json"),
}
"""What a client says; then it hears the beginning of what comes back, and leaves."""
UNANSWERED = ("half a head", "half a body", "many behind a wait")


async def leave_after(port: int, words: bytes, is_answered: bool) -> None:
    """One connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(words)
    if is_answered:
        async with asyncio.timeout(10):
            assert await reader.read(100)
    writer.close()


async def circles_left(site: Site, kind: str) -> int:
    """How many objects are unreachable and still there after some connections."""
    metrics = Metrics()
    server = HttpServer(OPTIONS, metrics, SystemClock())
    server.bind()
    await server.start(site.asgi)
    port = int(server.url.rpartition(":")[2])
    words = KINDS[kind].replace(b"{job}", (await site.accepted()).encode())

    async def all_leave(count: int) -> None:
        await asyncio.gather(*(leave_after(port, words, kind not in UNANSWERED) for _ in range(count)))
        await wait_until_async(lambda: metrics.read("http_connections") == 0, "all connections to be gone")

    await all_leave(2)
    gc.collect()
    gc.disable()
    try:
        await all_leave(CONNECTIONS)
        return gc.collect()
    finally:
        gc.enable()
        await server.abort()


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_leaves_no_circle_of_references(kind: str, tmp_path: Path) -> None:
    async def left() -> int:
        async with open_site(tmp_path) as site:
            return await circles_left(site, kind)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(left()) < CONNECTIONS
