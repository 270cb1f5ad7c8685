"""Requests sent ahead of their answers: answered in order, none lost, and none costs the server more than its turn."""

import contextlib
import re

from coatcheck.testing.waiting import wait_until
from harness.http import Client
from harness.raw import reset
from harness.server import Server
from harness.stage import Stage

from .limited import memory_mib
from .wire import HOST, Wire, get, post, post_in_chunks, request, wired

FLOOD_BYTES = 16 * 1024 * 1024
GROWTH_MIB_MAX = 24
TINY = b"GET /livez HTTP/1.1\r\nHost:a\r\n\r\n"
FLOOD = TINY * 4000


def named(number: int) -> str:
    return f"X-Correlation-ID: {number}"


def test_many_at_once_are_answered_in_order_and_none_is_lost(server: Server, stage: Stage) -> None:
    kinds = [
        (get("/livez", "X-Correlation-ID: %d"), "GET", 200),
        (post("/v1/anything", b"1", "X-Correlation-ID: %d"), "POST", 202),
        (post("/v1/anything", b'"%s"' % (b"x" * 9000), "X-Correlation-ID: %d"), "POST", 202),
        (get("/v1/tasks/job_none", "X-Correlation-ID: %d"), "GET", 404),
        (post("/v1/anything", b"{", "X-Correlation-ID: %d"), "POST", 400),
        (request("HEAD", "/v1/tasks", ("X-Correlation-ID: %d",)), "HEAD", 200),
    ]
    sent = [(text % number, method, status) for number in range(300) for text, method, status in [kinds[number % 6]]]
    with wired(server.port) as wire:
        wire.say(*(bytes_sent for bytes_sent, _, _ in sent))
        for number, (_, method, status) in enumerate(sent):
            answer = wire.answer(method)
            assert (answer.status, answer.headers["x-correlation-id"]) == (status, str(number))


def test_what_comes_in_single_bytes_is_answered_all_the_same(server: Server) -> None:
    sent = get("/livez", named(1)) + post("/v1/anything", b"[1]", named(2)) + get("/livez", named(3))
    with wired(server.port) as wire:
        for position in range(len(sent)):
            wire.say(sent[position : position + 1])
        assert [wire.answer().headers["x-correlation-id"] for _ in range(3)] == ["1", "2", "3"]


def waiting(wire: Wire, stage: Stage) -> None:
    """Hand in work and wait for its end, which the stage decides."""
    plan = str(stage.task("wait")).replace("'", '"').encode()
    wire.say(post("/v1/tasks", plan, "Prefer: wait=9", named(1)))
    stage.wait_for_starts()


def test_no_request_overtakes_the_one_before_it(server: Server, stage: Stage) -> None:
    with wired(server.port) as wire:
        waiting(wire, stage)
        wire.say(get("/livez", named(2)))
        stage.go()
        assert (first := wire.answer()).status == 200
        assert first.json["status"] == "succeeded"
        assert wire.answer().headers["x-correlation-id"] == "2"


def test_garbage_behind_a_request_does_not_cost_it_its_answer(server: Server, stage: Stage) -> None:
    with wired(server.port) as wire:
        waiting(wire, stage)
        wire.say(get("/livez", named(2)), b"GARBAGE\r\n\r\n", get("/livez", named(3)))
        stage.go()
        first, second, third = wire.answers()
    assert (first.status, first.json["status"]) == (200, "succeeded")
    assert (second.status, second.headers["x-correlation-id"]) == (200, "2")
    assert (third.status, third.headers["connection"]) == (400, "close")


def test_a_broken_body_behind_a_request_does_not_cost_it_its_answer(server: Server, stage: Stage) -> None:
    broken = post_in_chunks("/v1/anything", b"zz\r\n")
    with wired(server.port) as wire:
        waiting(wire, stage)
        wire.say(broken)
        stage.go()
        first, second = wire.answers()
    assert (first.status, first.json["status"], second.status) == (200, "succeeded", 400)


def test_headers_too_large_behind_a_request_do_not_cost_it_its_answer(server: Server, stage: Stage) -> None:
    with wired(server.port) as wire:
        waiting(wire, stage)
        wire.say(b"GET /livez HTTP/1.1\r\n", HOST, b"X: ", b"x" * 100_000)
        stage.go()
        first, second = wire.answers()
    assert (first.json["status"], second.status, second.code) == ("succeeded", 431, "headers-too-large")


def test_a_flood_of_requests_waits_with_the_client(server: Server, client: Client, stage: Stage) -> None:
    before = memory_mib(server)
    with wired(server.port) as wire:
        waiting(wire, stage)
        wire.plug.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < FLOOD_BYTES:
                sent += wire.plug.send(FLOOD[sent % len(TINY) :])
        assert client.get("/livez").status_code == 200
        grown = memory_mib(server) - before
        assert grown < GROWTH_MIB_MAX, f"{sent} bytes sent ahead took {grown:.0f} MiB"
        stage.go()
        wire.plug.settimeout(30)
        assert wire.answer().json["status"] == "succeeded"
        for _ in range(60):
            assert {wire.answer().status for _ in range(20)} == {200}
            wire.plug.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sent += wire.plug.send(FLOOD[sent % len(TINY) :])
            wire.plug.settimeout(30)
        grown = memory_mib(server) - before
        assert grown < GROWTH_MIB_MAX, f"reading on as answers went took {grown:.0f} MiB"


def streams_ended(client: Client) -> float:
    """How many answers of the route of jobs the server has brought to their end."""
    series = r'http_requests_total\{method="GET",route="/v1/one-by-one/\{id\}",status="200"\} (\S+)'
    found = re.search(series, client.get("/metrics").text)
    return float(found[1]) if found else 0.0


def test_a_stream_with_a_request_behind_it_ends_with_its_client(server: Server, client: Client) -> None:
    job = client.submit("one-by-one", {}, Job_Start_After="3600")
    before = streams_ended(client)
    for _ in range(3):
        with wired(server.port) as wire:
            wire.say(get(job["status_url"], "Accept: text/event-stream"), get("/livez"))
            wire.until(b"event: status")
            reset(wire.plug)
    wait_until(lambda: streams_ended(client) >= before + 3, "the streams of clients that left to end", 10)
    client.cancel(job)
