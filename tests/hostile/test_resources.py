"""A machine that gives little: the server refuses what it has no room for, lives on, and recovers by itself."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client
from harness.server import Server
from harness.stage import Stage

from .conftest import Limited
from .limited import MIB, files_open, memory_mib
from .wire import Closed, Wire, get, post, request, wired

FILES = 64
SPARE = 12
MEMORY_MIB = 256
ROOM_MIB = MEMORY_MIB // 16 // 2
"""Half of it is left to other tenants."""
HELD = ROOM_MIB + 8
BODY = b'"' + b"x" * (MIB - 3) + b'"'
"""As large in memory as it is on the wire."""
SWELLING = b"[" + b"[]," * (MIB // 3 - 2) + b"[]]"
"""Some thirty times as large once it is read."""
PROMPT = timedelta(seconds=3)


def serves_normally(server: Server) -> None:
    """Work handed in now is done, a file is read back, and the client of it waits for nothing."""
    client = Client(server.url)
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
    assert client.final(client.submit("process-tasks", {}))["status"] == "succeeded"
    file = client.final(client.submit("files", {}))
    assert client.get(file["result_url"]).content.startswith(b"%PDF-")
    assert client.get("/readyz").elapsed < PROMPT
    client.close()


def test_few_files_let_few_connections_in_and_the_rest_wait_or_are_refused(limited: Limited) -> None:
    server = limited([f"-n {FILES}"], {})
    serves_normally(server)
    quiet = files_open(server)
    made = []
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            for _ in range(4 * FILES):
                plug = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
                with contextlib.suppress(ConnectionError):
                    plug.sendall(request("GET", "/livez")[:-2])
            newcomer = Client(server.url)
            assert newcomer.get("/livez").status_code == 200
            made.append(newcomer.submit("process-tasks", {}))
            assert files_open(server) < FILES
            newcomer.close()
        wait_until(lambda: files_open(server) <= quiet + SPARE, "the files of connections that are gone to be closed")
    client = Client(server.url)
    assert {client.final(job)["status"] for job in made} == {"succeeded"}
    client.close()
    serves_normally(server)


def test_handlers_that_fill_every_thread_leave_the_api_alone(limited: Limited, stage: Stage) -> None:
    server = limited([], {"concurrency": "4"})
    client = Client(server.url)
    blocked = [client.submit("thread-tasks", stage.task("wait")) for _ in range(12)]
    stage.wait_for_starts(4)
    for _ in range(50):
        assert client.post("tasks", {}).elapsed < PROMPT
        assert client.get("/readyz").elapsed < PROMPT
    statuses = [client.job(job)["status"] for job in blocked]
    assert (statuses.count("running"), statuses.count("queued")) == (4, 8)
    assert len(stage.starts) == 4
    cancelled = client.cancel(blocked[-1])
    assert cancelled.json()["status"] == "cancelled"
    stage.go()
    assert {client.final(job)["status"] for job in blocked[:-1]} == {"succeeded"}
    serves_normally(server)
    client.close()


def hold_body(wire: Wire, body: bytes) -> None:
    """Send a large body but for its last byte."""
    wire.say(post("/v1/anything", body)[:-1])


def end_body(wire: Wire, body: bytes) -> int:
    """Send the last byte, and give the status of the answer."""
    wire.say(body[-1:])
    return wire.answer().status


def submit_at_once(server: Server, count: int, body: bytes) -> set[int]:
    """The statuses of large submissions made at the same time."""

    def submit(_: int) -> int:
        with wired(server.port) as wire:
            wire.say(post("/v1/anything", body, "Connection: close"))
            return wire.answer().status

    with ThreadPoolExecutor(count) as pool:
        return set(pool.map(submit, range(count)))


@pytest.mark.parametrize("body", [BODY, SWELLING], ids=["text", "lists"])
def test_little_memory_refuses_large_bodies_and_keeps_serving(limited: Limited, body: bytes) -> None:
    server = limited([f"-d {MEMORY_MIB * 1024}"], {"concurrency": "2", "body_timeout_s": "30"})
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(wired(server.port)) for _ in range(HELD)]
        for wire in wires:
            hold_body(wire, body)
        client = Client(server.url)
        wait_until(lambda: saturations(client) >= HELD - ROOM_MIB, "bodies without room to be refused")
        assert client.post("tasks", {}).status_code == 202, "a small body needs no room"
        statuses = [end_body(wire, body) for wire in wires]
    assert set(statuses) == {202, 503}
    assert 0 < statuses.count(503) <= HELD - ROOM_MIB + 1
    for _ in range(2):
        assert submit_at_once(server, 24, body) <= {202, 503}
    assert memory_mib(server) < MEMORY_MIB
    wait_until(lambda: client.get("/v1/anything?status=queued").json()["jobs"] == [], "large jobs to start", 60)
    serves_normally(server)
    client.close()


def saturations(client: Client) -> int:
    """How many submissions were refused for want of room."""
    lines = [line for line in client.get("/metrics").text.splitlines() if 'code="saturated"' in line]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("coatcheck_refused_total"))


def test_bodies_of_any_size_are_refused_at_their_bound(limited: Limited) -> None:
    server = limited([f"-d {MEMORY_MIB * 1024}"], {})
    before = memory_mib(server)
    too_long = f"Content-Length: {1024 * MIB}"
    for head in (
        ("Content-Type: application/json", too_long),
        ("Content-Type: application/json", too_long, "Expect: 100-continue"),
    ):
        with wired(server.port) as wire:
            wire.say(request("POST", "/v1/anything", head), b"[" + b"1," * MIB * 6)
            assert (answer := wire.answer()).status == 413
            assert answer.code == "payload-too-large"
    with wired(server.port) as wire:
        wire.say(request("POST", "/v1/anything", ("Content-Type: application/json", "Transfer-Encoding: chunked")))
        with contextlib.suppress(Closed, TimeoutError):
            for _ in range(32):
                wire.say(b"%x\r\n" % MIB, b"1" * MIB, b"\r\n")
            assert wire.answer().status == 413
    assert memory_mib(server) - before < 48
    with wired(server.port) as wire:
        wire.say(get("/livez"))
        assert wire.answer().status == 200
    serves_normally(server)
