"""Texts made to be slow to read: each is read in a moment, however it is built, and the next request with it."""

import pytest

from harness.http import Client
from harness.server import Server

from .wire import get, request, wired

LONG = 30_000
FITTING = 1000
AT_MOST_S = 5.0

PIECES = [";  ", "; ;", ";\t \t", ', "', '\\"', '"\\', ';a="', ";a=b", "=;=", "W/", 'W/"', '", "', "*/*,", ";q=0."]
ENDS = ["=", '"', "\xe4", ";", "\\"]
TYPED = ("Content-Type: application/json",)
STARTS = {
    "Prefer": ["wait=1", ""],
    "Accept": ["application/json", ""],
    "Content-Type": ["application/json", 'application/json; a="', "application/a+"],
    "If-None-Match": ['"a"', 'W/"', ""],
    "Idempotency-Key": ['"a"', '"', "a"],
    "Job-Deadline": ["2030-01-01T00:00:00.", "1."],
    "traceparent": ["00-", ""],
    "Last-Event-ID": ["1"],
    "X-Correlation-ID": ["a"],
}


def text(start: str, piece: str, end: str, length: int) -> str:
    """A value of just this length."""
    return (start + piece * length)[: length - len(end)] + end


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("length", [FITTING, LONG])
def test_no_header_takes_long_to_read(server: Server, client: Client, name: str, length: int) -> None:
    url = client.submit("anything", 1)["status_url"]
    lines = [
        f"{name}: {text(start, piece, end, length)}" for start in STARTS[name] for piece in PIECES for end in ENDS
    ][:: 1 if length == FITTING else 5]
    with wired(server.port) as wire:
        wire.plug.settimeout(AT_MOST_S)
        for line in lines:
            head = request("POST", "/v1/anything", (line, "Content-Length: 1", *TYPED[name == "Content-Type" :]))
            wire.say(head, b"1", get(url, line))
            statuses = {wire.answer("POST").status, wire.answer("GET").status}
            assert statuses < {200, 202, 304, 400, 406, 410, 415}, line[:60]


@pytest.mark.parametrize("piece", ["a=&", "%", "%41", "limit=1&", "+", ";", "cursor=", "a" * 50])
def test_no_query_takes_long_to_read(server: Server, client: Client, piece: str) -> None:
    query = text("", piece, "", LONG)
    assert client.http.get(f"/v1/jobs?{query}", timeout=AT_MOST_S).status_code in {200, 400}
