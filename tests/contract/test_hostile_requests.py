"""Problems: what no client library would send is refused or cut off, and nobody else notices."""

import contextlib
import random
import socket
from datetime import timedelta

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.raw import RawAnswer, chunked, connection, exchange, post_head, post_request, read_answer, reset
from harness.server import QUIET, Server
from harness.stage import Stage

from .conftest import Connect, Serve

JSON = ("Content-Type", "application/json")
SEED = 46
RESETS = 500


def head(*headers: tuple[str, str]) -> bytes:
    return post_head("/v1/tasks", [JSON, *headers])


@pytest.mark.parametrize(
    "request_bytes",
    [
        head(("Content-Length", "2"), ("Content-Length", "3")) + b"{} ",
        head(("Content-Length", "2"), ("Transfer-Encoding", "chunked")) + chunked(b"{}"),
        head(("Content-Length", "-1")) + b"{}",
        head(("Content-Length", "two")) + b"{}",
        head(("Content-Length", "0x2")) + b"{}",
        head(("Transfer-Encoding", "chunked, chunked")) + chunked(b"{}"),
        head(("Transfer-Encoding", "gzip, chunked")) + chunked(b"{}"),
        head(("Transfer-Encoding", "chunked")) + b"zz\r\n{}\r\n0\r\n\r\n",
        head(("Transfer-Encoding", "chunked")) + b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        head(("Bad Name", "x"), ("Content-Length", "2")) + b"{}",
        b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nHost : b\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /v1/tasks HTTP/9.9\r\nHost: a\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
        b"GET http://[::bad/ HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=lambda value: repr(value[-40:]),
)
def test_requests_with_two_meanings_are_refused_and_store_nothing(
    server: Server, client: Client, request_bytes: bytes
) -> None:
    newest = client.get("/v1/tasks?limit=1").json()["jobs"]
    with contextlib.suppress(ConnectionError):
        answer = unless_closed(server, request_bytes)
        assert answer is None or answer.status in {400, 501, 505}, answer
    assert client.get("/v1/tasks?limit=1").json()["jobs"] == newest


def unless_closed(server: Server, request_bytes: bytes) -> RawAnswer | None:
    """The answer, or None where the connection was closed instead."""
    with connection(server.port) as plug:
        plug.sendall(request_bytes)
        if not plug.recv(1, socket.MSG_PEEK):
            return None
        return read_answer(plug)


@pytest.mark.parametrize("hosts", [b"", b"Host: a\r\nHost: b\r\n"], ids=["none", "two"])
def test_a_request_without_one_host_is_400(server: Server, hosts: bytes) -> None:
    assert exchange(server.port, b"GET /v1/jobs HTTP/1.1\r\n" + hosts + b"\r\n", "GET").status == 400


def test_http_1_0_needs_no_host(server: Server) -> None:
    lines = b"POST /v1/anything HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    assert exchange(server.port, lines).status == 202


def test_bb043_an_absolute_target_is_not_reflected(server: Server) -> None:
    lines = b"POST http://evil.example/v1/anything HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    answer = exchange(server.port, lines + b"Content-Length: 2\r\n\r\n{}")
    assert answer.status in {202, 400}
    assert b"evil.example" not in answer.body
    assert "evil.example" not in str(answer.headers)
    doubled = exchange(server.port, b"GET //evil.example/v1/anything HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
    assert doubled.status == 404
    assert "evil.example" not in str(doubled.headers)


@pytest.mark.parametrize("name", ["X-Correlation-ID", "Idempotency-Key", "Prefer", "Job-Priority", "Host", "Accept"])
def test_nothing_reflected_can_split_an_answer(server: Server, name: str) -> None:
    injected = post_head(
        "/v1/tasks", [JSON, ("Content-Length", "2"), (name, "a%0d%0aSet-Cookie:%20x=1\rSet-Cookie: y=1")]
    )
    with contextlib.suppress(ConnectionError):
        answer = unless_closed(server, injected + b"{}")
        assert answer is None or "set-cookie" not in answer.headers
    encoded = exchange(
        server.port, f"GET /v1/tasks/%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: {name}\r\n\r\n".encode(), "GET"
    )
    assert encoded.status in (400, 404)
    assert "set-cookie" not in encoded.headers


def test_a_request_smuggled_behind_another_is_not_served(server: Server, client: Client) -> None:
    newest = client.get("/v1/anything?limit=1").json()["jobs"]
    hidden = post_request("/v1/anything", b'"smuggled"')
    request = head(("Content-Length", str(len(hidden) + 5)), ("Transfer-Encoding", "chunked")) + b"0\r\n\r\n" + hidden
    with contextlib.suppress(ConnectionError):
        unless_closed(server, request)
    assert client.get("/v1/anything?limit=1").json()["jobs"] == newest


def test_pipelined_requests_are_answered_in_order_or_closed(server: Server) -> None:
    requests = [post_request("/v1/anything", b"%d" % number) for number in range(5)]
    with connection(server.port) as plug:
        plug.sendall(b"".join(requests))
        received = b""
        with contextlib.suppress(TimeoutError):
            plug.settimeout(3)
            while received.count(b"HTTP/1.1 202") < 5 and (part := plug.recv(65536)):
                received += part
    assert received.count(b"HTTP/1.1 202") == 5
    assert received.count(b"HTTP/1.1 ") == 5


def test_slow_heads_are_cut_off(serve: Serve, connect: Connect) -> None:
    server = serve(settings=QUIET | {"headers_timeout_s": "0.5"})
    with connection(server.port) as plug:
        plug.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        received = plug.recv(65536)
        assert received == b"" or received.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))
    assert connect(server).get("/livez").status_code == 200


def test_idle_connections_keep_nobody_out(server: Server, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            plug = stack.enter_context(connection(server.port))
            plug.sendall(b"GET /livez HTTP/1.1\r\n")
        answer = client.post("tasks", {})
    assert answer.status_code == 202
    assert answer.elapsed < timedelta(seconds=2)


def test_a_reader_that_is_stuck_holds_nobody_up(server: Server, client: Client) -> None:
    job = client.final(client.submit("tasks", {"plan": ["text:8000000"]}))
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            plug = stack.enter_context(connection(server.port))
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plug.sendall(f"GET {job['result_url']} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            plug.recv(100)
        assert client.submit("tasks", {})["status"] == "queued"
        assert client.get("/livez").elapsed < timedelta(seconds=2)


def all_jobs(client: Client, path: str) -> list[JsonObject]:
    """Every job of a list, page by page."""
    jobs: list[JsonObject] = []
    cursor = ""
    while True:
        page = client.get(f"{path}?limit=200{cursor}").json()
        jobs += page["jobs"]
        if page["next_cursor"] is None:
            return jobs
        cursor = f"&cursor={page['next_cursor']}"


def test_bb046_a_client_that_vanishes_leaves_no_job_or_a_whole_one(
    server: Server, client: Client, stage: Stage
) -> None:
    dice = random.Random(SEED)  # noqa: S311 - the same dice in every run
    body = b'{"plan": ["return"], "folder": "%s", "value": "%s"}' % (str(stage.folder).encode(), b"x" * 20_000)
    request = post_request("/v1/short-key", body)
    before = {job["id"] for job in all_jobs(client, "/v1/short-key")}
    for _ in range(RESETS):
        sent = dice.choice([dice.randrange(1, len(request)), len(request), len(request)])
        with connection(server.port) as plug:
            plug.sendall(request[:sent])
            if sent == len(request) and dice.random() < 0.5:
                plug.recv(dice.randrange(1, 200))
            reset(plug)
    settled = client.final(client.submit("short-key", {}))

    def made() -> list[str]:
        jobs = all_jobs(client, "/v1/short-key")
        return [job["status"] for job in jobs if job["id"] not in before | {settled["id"]}]

    wait_until(lambda: set(made()) <= {"succeeded"}, "every job that was made to succeed", 30)
    count = len(made())
    assert RESETS // 5 <= count <= RESETS
    assert len(stage.starts) == count, "each job ran once, and nothing ran that is no job"
    assert client.get("/livez").status_code == 200


def test_answers_are_not_mixed_up_after_a_refusal(server: Server) -> None:
    with connection(server.port) as plug:
        plug.sendall(post_request("/v1/tasks", b'{"nope": 1}'))
        assert read_answer(plug).status == 422
        plug.sendall(post_request("/v1/tasks", b"{}"))
        assert read_answer(plug).status == 202
        plug.sendall(b"HEAD /v1/tasks/job_x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_answer(plug, "HEAD").status == 404
        plug.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_answer(plug, "GET").status == 200
