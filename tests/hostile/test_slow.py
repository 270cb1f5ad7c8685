"""Clients that send slowly, read slowly or leave: each is cut off in its time, and nobody waits for them."""

import contextlib
import random
import socket
import time
from collections.abc import Iterator

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.raw import reset
from harness.server import Server

from .conftest import Limited
from .limited import memory_mib, open_connections
from .wire import Closed, Wire, get, post, post_in_chunks, request, wired

SEED = 27
DEPARTURES = 250
READERS = 24
RESULT_BYTES = 8_000_000
ROOM_MIB = 64
AT_MOST_S = 12.0
# The event loop's timers count in whole milliseconds, from the one in which they were set.
AT_LEAST_S = 0.999


def trickle(wire: Wire, words: bytes) -> None:
    """Send a byte at a time, as slowly as a server may bear, until it answers or closes."""
    wire.plug.settimeout(0.1)
    for position in range(len(words)):
        wire.say(words[position : position + 1])
        with contextlib.suppress(TimeoutError):
            wire.buffer += wire.plug.recv(65536)
            break
    wire.plug.settimeout(AT_MOST_S)


def test_a_body_that_trickles_in_is_cut_off_in_its_time(limited: Limited) -> None:
    server = limited([], {"body_timeout_s": "1"})
    for head in (
        request("POST", "/v1/anything", ("Content-Type: application/json", "Content-Length: 900")),
        request("POST", "/v1/anything", ("Content-Type: application/json", "Transfer-Encoding: chunked")),
    ):
        began_s = time.monotonic()
        with wired(server.port) as wire:
            wire.say(head)
            trickle(wire, b"1\r\n1\r\n" * 150)
            took_s = time.monotonic() - began_s
            answer = wire.answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (408, "request-timeout", "close")
        assert AT_LEAST_S <= took_s < AT_MOST_S


def test_a_head_that_trickles_in_is_cut_off_in_its_time(limited: Limited) -> None:
    server = limited([], {"headers_timeout_s": "1"})
    # The time counts from the moment the connection was taken.
    began_s = time.monotonic()
    with wired(server.port) as wire:
        trickle(wire, get("/livez", "X: " + "x" * 900))
        took_s = time.monotonic() - began_s
        assert wire.answer().status == 408
    assert AT_LEAST_S <= took_s < AT_MOST_S


def test_slow_bodies_keep_no_newcomer_out(limited: Limited) -> None:
    server = limited([], {"connections_max": "20", "body_timeout_s": "60"})
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(wired(server.port)).say(post("/v1/anything", b'"' + b"x" * 900 + b'"')[:-1])
        client = Client(server.url)
        for _ in range(10):
            assert client.submit("anything", 1)["done"] is False
        client.close()


def test_readers_that_are_stuck_hold_no_more_than_their_room(server: Server, client: Client) -> None:
    job = client.final(client.submit("tasks", {"plan": [f"text:{RESULT_BYTES}"]}))
    before = memory_mib(server)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(stuck(server, job)) for _ in range(READERS)]
        statuses = [int(wire.plug.recv(12).split()[1]) for wire in wires]
        assert set(statuses) == {200, 503}
        assert statuses.count(200) == ROOM_MIB * 1024 * 1024 // RESULT_BYTES // 2, "one tenant leaves half of the room"
        assert memory_mib(server) - before < 2 * ROOM_MIB
        assert client.get(job["status_url"]).status_code == 200
    wait_until(lambda: client.get(job["result_url"]).status_code == 200, "room for the next reader", 10)
    assert len(client.get(job["result_url"]).content) == RESULT_BYTES + 2


@contextlib.contextmanager
def stuck(server: Server, job: JsonObject) -> Iterator[Wire]:
    """A reader that asks for the result and reads next to nothing of it."""
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.settimeout(AT_MOST_S)
        plug.connect(("127.0.0.1", server.port))
        wire = Wire(plug)
        wire.say(get(job["result_url"]))
        yield wire


def test_clients_that_leave_anywhere_leave_nothing_behind(server: Server, client: Client) -> None:
    dice = random.Random(SEED)  # noqa: S311 - the same dice in every run
    waiting = client.submit("anything", 1, Job_Start_After="3600")
    done = client.final(client.submit("tasks", {"plan": ["text:300000"]}))
    kinds = [
        post("/v1/anything", b'"' + b"x" * 3000 + b'"', "Prefer: wait=5"),
        post("/v1/anything", b'"' + b"x" * 200_000 + b'"'),
        post_in_chunks("/v1/anything", b"3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"),
        get(waiting["status_url"], "Accept: text/event-stream"),
        get(waiting["status_url"], "Prefer: wait=5"),
        get(done["result_url"]),
        post("/v1/anything", b"x" * 2_000_000),
        get("/v1/jobs?limit=200"),
        get("/docs") + get("/openapi.json"),
    ]
    for _ in range(DEPARTURES):
        words = dice.choice(kinds)
        sent = len(words) if dice.random() < 0.5 else dice.randrange(1, len(words))
        with wired(server.port) as wire:
            wire.say(words[:sent])
            if sent == len(words) and dice.random() < 0.5:
                wire.plug.settimeout(0.05)
                with contextlib.suppress(TimeoutError, Closed):
                    wire.plug.recv(dice.randrange(1, 5000))
            if dice.random() < 0.5:
                reset(wire.plug)
    wait_until(lambda: open_connections(client) <= 2, "every connection to be gone", 15)
    assert client.cancel(waiting).status_code == 200
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
