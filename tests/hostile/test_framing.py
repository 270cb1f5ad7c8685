"""Where a request ends, and to whom it goes: whatever two servers could read differently is refused and stores nothing.

A gateway in front that read it the other way would let one client speak in another's name.
"""

import pytest

from harness.http import Client
from harness.server import Server

from .wire import HOST, JSON, get, post, post_in_chunks, request, wired

PATH = b"POST /v1/anything HTTP/1.1\r\n"
CHUNKED = b"2\r\n{}\r\n0\r\n\r\n"


def newest(client: Client) -> list[str]:
    """The id that the list of the operation begins with. An earlier job may still be on its way to its end."""
    return [job["id"] for job in client.get("/v1/anything?limit=1").json()["jobs"]]


def refused(server: Server, client: Client, *parts: bytes) -> int:
    """Say it and something valid behind it: the one answer is a refusal, nothing follows, and no job was made."""
    before = newest(client)
    with wired(server.port) as wire:
        wire.say(*parts, get("/livez"))
        answers = wire.answers()
    assert [answer.status for answer in answers][1:] == [], "the connection outlived what could not be read"
    assert newest(client) == before
    status = answers[0].status if answers else 400
    assert 400 <= status < 500
    return status


@pytest.mark.parametrize(
    "codings",
    [
        ["gzip, chunked"],
        ["chunked, gzip"],
        ["chunked, chunked"],
        ["chunked, identity"],
        ["identity"],
        ["gzip"],
        ["xchunked"],
        ["chunkedx"],
        ["chunked;q=1"],
        ["\x0bchunked"],
        ["chu nked"],
        [""],
        ["chunked", "chunked"],
        ["gzip", "chunked"],
        ["chunked", "identity"],
        ['"chunked"'],
    ],
    ids=repr,
)
def test_no_transfer_coding_but_chunked_is_taken(server: Server, client: Client, codings: list[str]) -> None:
    lines = [f"Transfer-Encoding: {coding}\r\n".encode("latin-1") for coding in codings]
    refused(server, client, PATH, HOST, JSON, *lines, b"\r\n", CHUNKED)


@pytest.mark.parametrize("coding", ["chunked", "CHUNKED", "Chunked", " chunked ", "\tchunked"], ids=repr)
def test_chunked_is_taken_however_it_is_written(server: Server, coding: str) -> None:
    with wired(server.port) as wire:
        wire.say(PATH, HOST, JSON, f"Transfer-Encoding:{coding}\r\n\r\n".encode(), CHUNKED, get("/livez"))
        assert [wire.answer().status, wire.answer().status] == [202, 200]


def test_http_1_0_has_no_transfer_codings(server: Server, client: Client) -> None:
    old = PATH.replace(b"1.1", b"1.0")
    refused(server, client, old, HOST, JSON, b"Transfer-Encoding: chunked\r\n\r\n", CHUNKED)


@pytest.mark.parametrize(
    "lengths",
    [
        ["2", "3"],
        ["2", "2"],
        ["2, 2"],
        ["2,3"],
        ["+2"],
        ["-2"],
        ["2 2"],
        ["0x2"],
        ["2.0"],
        ["2e0"],
        ["1_0"],
        ["two"],
        [""],
        ["\xb2"],
        ["18446744073709551618"],
        ["99999999999999999999999999"],
    ],
    ids=repr,
)
def test_a_length_is_one_whole_number(server: Server, client: Client, lengths: list[str]) -> None:
    lines = [f"Content-Length: {length}\r\n".encode("latin-1") for length in lengths]
    refused(server, client, PATH, HOST, JSON, *lines, b"\r\n{}")


@pytest.mark.parametrize("order", [1, -1])
def test_a_length_and_chunks_together_are_refused(server: Server, client: Client, order: int) -> None:
    lines = [b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n"][::order]
    refused(server, client, PATH, HOST, JSON, *lines, b"\r\n", CHUNKED)


@pytest.mark.parametrize(
    "chunks",
    [
        b"2\n{}\n0\n\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"+2\r\n{}\r\n0\r\n\r\n",
        b" 2\r\n{}\r\n0\r\n\r\n",
        b"2 \r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}0\r\n\r\n",
        b"2\r\n{}x\r\n0\r\n\r\n",
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"\r\n{}\r\n0\r\n\r\n",
        b"10000000000000002\r\n{}\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        b"2;a\nb\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}\r\n0\r\nbad trailer\r\n\r\n",
        b"2\r\n{}\r\n0\r\nA: b\x00c\r\n\r\n",
    ],
    ids=repr,
)
def test_chunks_have_one_form(server: Server, client: Client, chunks: bytes) -> None:
    refused(server, client, post_in_chunks("/v1/anything", chunks))


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"Host: a\r\nHost: a\r\n",
        b"Host: a\r\nhost: b\r\n",
        b"Host: a b\r\n",
        b"Host: a/b\r\n",
        b"Host: a@b\r\n",
        b"Host: a,b\r\n"[:-2] + b"\xff\r\n",
        b"Host : a\r\n",
        b" Host: a\r\n",
        b"Host: a\r\n b\r\n",
    ],
    ids=repr,
)
def test_a_host_stands_once_and_is_one(server: Server, client: Client, lines: bytes) -> None:
    refused(server, client, PATH, lines, JSON, b"Content-Length: 2\r\n\r\n{}")


def test_http_1_0_needs_no_host(server: Server) -> None:
    with wired(server.port) as wire:
        wire.say(b"GET /livez HTTP/1.0\r\n\r\n")
        assert [answer.status for answer in wire.answers()] == [200]


@pytest.mark.parametrize(
    "line",
    [
        b"No colon\r\n",
        b": no name\r\n",
        b"Sp ace: x\r\n",
        b"Tab\t: x\r\n",
        b"Nul\x00: x\r\n",
        b"A: nul\x00\r\n",
        b"A: cr\rB: x\r\n",
        b"A: bell\x07\r\n",
        b"A: del\x7f\r\n",
        b"A: x\r\n folded\r\n",
        b"(A): x\r\n",
        b"A\xe4: x\r\n",
    ],
    ids=repr,
)
def test_a_header_line_that_is_none_is_refused(server: Server, client: Client, line: bytes) -> None:
    refused(server, client, PATH, HOST, line, JSON, b"Content-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    "start",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/1.1 extra\r\n" + HOST + b"\r\n",
        b"GET /li vez HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /livez HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET /livez http/1.1\r\n" + HOST + b"\r\n",
        b"GET http://[::bad/ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"BREW /livez HTTP/1.1\r\n" + HOST + b"\r\n",
        b"\x00" * 64 + b"\r\n\r\n",
    ],
    ids=lambda start: repr(start[:40]),
)
def test_what_is_no_request_is_refused(server: Server, client: Client, start: bytes) -> None:
    refused(server, client, start)


def test_trailers_never_pass_for_headers(server: Server) -> None:
    trailers = (
        b"Idempotency-Key: trailing\r\nX-Correlation-ID: trailing\r\nContent-Type: text/plain\r\nPrefer: wait=9\r\n"
    )
    made = []
    with wired(server.port) as wire:
        for _ in range(2):
            wire.say(post_in_chunks("/v1/anything", b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n"))
            made.append(wire.answer())
    assert [answer.status for answer in made] == [202, 202]
    assert made[0].json["id"] != made[1].json["id"]
    assert "trailing" not in repr(made)
    assert "preference-applied" not in made[0].headers


@pytest.mark.parametrize(
    "rest",
    [
        b"A: " + b"x" * 100_000,
        b"A: x\r\n" * 20_000,
        b"A" * 100_000,
    ],
    ids=["value", "lines", "name"],
)
@pytest.mark.parametrize("begun", [b"2\r\n{}\r\n0\r\n", b"2;"], ids=["trailers", "extension"])
def test_what_stands_around_chunks_is_bounded(server: Server, client: Client, begun: bytes, rest: bytes) -> None:
    before = newest(client)
    with wired(server.port) as wire:
        wire.say(post_in_chunks("/v1/anything", begun + rest))
        assert wire.answer().status in {400, 431}
        assert wire.is_closed()
    assert newest(client) == before


def test_an_offer_to_upgrade_is_not_taken_and_loses_nothing(server: Server) -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with wired(server.port) as wire:
        wire.say(get("/livez", *offer), post("/v1/anything", b"1", *offer), post("/v1/anything", b"2"), get("/livez"))
        assert [wire.answer().status for _ in range(4)] == [200, 202, 202, 200]


def test_a_body_where_none_is_read_is_no_request(server: Server, client: Client) -> None:
    before = newest(client)
    hidden = post("/v1/anything", b'"smuggled"')
    with wired(server.port) as wire:
        wire.say(request("GET", "/livez", (f"Content-Length: {len(hidden)}",)), hidden, get("/readyz"))
        assert wire.answer().body == b"ok\n"
        assert wire.answer().body == b"ready\n"
    assert newest(client) == before
