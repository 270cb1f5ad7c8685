"""What a client says comes back in answers, logs, lists and streams: it says no more there than its word."""

import json
from collections.abc import Iterator

import pytest

from harness.http import Client
from harness.raw import RawAnswer
from harness.server import Server
from harness.sse import read_events

from .wire import Closed, get, post, request, wired

INJECTED = "x-injected"
ANSWER_HEADERS = {
    "allow",
    "cache-control",
    "connection",
    "content-disposition",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "etag",
    "idempotent-replayed",
    "job-estimated-start",
    "link",
    "location",
    "preference-applied",
    "retry-after",
    "sunset",
    "transfer-encoding",
    "vary",
    "x-accel-buffering",
    "x-content-type-options",
    "x-correlation-id",
}
BREAKS = [
    "\r\n",
    "\n",
    "\r",
    "\x00",
    "%0d%0a",
    "%0a",
    "%00",
    "\\r\\n",
    "\x0b",
    "\x0c",
    "\x85",
    "\xe5\x98\x8a\xe5\x98\x8d",
]
HEADERS = [
    "X-Correlation-ID",
    "Idempotency-Key",
    "Prefer",
    "Accept",
    "If-None-Match",
    "Last-Event-ID",
    "traceparent",
    "Job-Start-After",
    "Job-Deadline",
    "Job-Priority",
    "Content-Type",
    "Host",
    "X-Forwarded-Host",
    "X-Forwarded-Prefix",
    "Forwarded",
    "Origin",
]


def injection(break_: str) -> str:
    return f"a{break_}X-Injected: yes{break_}{break_}<b>"


def unharmed(answer: RawAnswer) -> None:
    """The answer has only headers of its own, and its body is what its type says."""
    assert answer.headers.keys() <= ANSWER_HEADERS, answer.headers
    assert answer.status != 500, answer
    if answer.headers.get("content-type", "").endswith("json") and answer.body:
        json.loads(answer.body)


def said(server: Server, *parts: bytes, method: str = "POST") -> Iterator[RawAnswer]:
    """The answer to these bytes and to a request behind them; nothing where the server would not listen on."""
    with wired(server.port) as wire:
        wire.say(*parts, get("/livez", "Connection: close"))
        try:
            yield wire.answer(method)
            rest = wire.answers()
        except Closed:
            return
    assert [answer.status for answer in rest] in ([200], [], [400]), rest


@pytest.mark.parametrize("break_", BREAKS, ids=repr)
def test_no_header_splits_an_answer(server: Server, client: Client, break_: str) -> None:
    job = client.submit("anything", 1)
    for name in HEADERS:
        line = f"{name}: {injection(break_)}"
        head_only = tuple(line for _ in range(1))
        for parts, method in (
            (post("/v1/anything", b"1", line), "POST"),
            (get(job["status_url"], *head_only), "GET"),
            (get("/v1/jobs", line), "GET"),
            (request("OPTIONS", "/v1/anything", (line,)), "OPTIONS"),
        ):
            for answer in said(server, parts, method=method):
                unharmed(answer)


@pytest.mark.parametrize("break_", BREAKS, ids=repr)
def test_no_url_splits_an_answer(server: Server, break_: str) -> None:
    text = injection(break_).replace(" ", "%20")
    for path in (
        f"/v1/anything/{text}",
        f"/v1/anything/{text}/result",
        f"/v1/{text}",
        f"/v1/jobs?cursor={text}",
        f"/v1/jobs?{text}=1",
        f"/v1/jobs?status={text}",
        f"/v1/anything?limit=1&{text}",
        f"/problems/{text}",
        f"/docs/operations/{text}",
        f"/docs/static/{text}",
        f"//{text}",
        f"http://{text}/v1/jobs",
        f"/v1/anything/../{text}",
    ):
        for answer in said(server, get(path), method="GET"):
            unharmed(answer)
            assert b"<b>" not in answer.body, "a page or problem repeats what it was sent as markup"


def test_names_are_quoted_wherever_they_come_back(server: Server, client: Client) -> None:
    name = "".join(map(chr, range(33, 127))).replace('"', "").replace("\\", "")[:100]
    answer = client.post("anything", 1, X_Correlation_ID=name, Idempotency_Key=f'"{name}"')
    assert answer.status_code == 202
    assert answer.headers["x-correlation-id"] == answer.json()["correlation_id"] == name
    assert client.post("anything", 1, Idempotency_Key=name).headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    "text", ["\r\nevent: done\r\ndata: {}\r\n\r\n", "\n\nid: 99\n\n", "\u2028\u2029\x85\x1b[31m</script>"]
)
def test_a_cancel_reason_stays_a_reason(server: Server, client: Client, text: str) -> None:
    job = client.submit("anything", 1, Job_Start_After="3600")
    assert client.cancel(job, text).json()["cancel_reason"] == text
    assert client.job(job)["cancel_reason"] == text
    listed = client.get("/v1/anything?status=cancelled&limit=5").json()["jobs"]
    assert text in [one["cancel_reason"] for one in listed]
    with client.stream(job) as events:
        [event] = [event for event in events if event.type != "comment"]
    assert (event.type, event.id, event.data["cancel_reason"]) == ("done", event.data["version"], text)


@pytest.mark.parametrize(
    "text", ['"\\u0000"', '"\\ud800"', '{"reason": "\\u0000"}', '{"reason": "a\x00b"}', '{"reason":"\xff"}']
)
def test_a_reason_that_no_text_can_be_is_malformed(server: Server, client: Client, text: str) -> None:
    job = client.submit("anything", 1, Job_Start_After="3600")
    answer = client.http.post(
        job["cancel_url"], content=text.encode("latin-1"), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")
    client.cancel(job)


@pytest.mark.parametrize("value", ["1", "1\n2", "9" * 400, "-1", "0x1", "1\x002", "\xb2", "1, 2", ""], ids=repr)
def test_a_last_event_id_is_a_number_or_nothing(server: Server, client: Client, value: str) -> None:
    job = client.final(client.submit("anything", 1))
    line = f"Last-Event-ID: {value}"
    for answer in said(server, get(job["status_url"], "Accept: text/event-stream", line), method="GET"):
        unharmed(answer)
        if answer.status == 200:
            events = list(read_events(answer.body.decode().splitlines()))
            assert [event.type for event in events if event.type != "comment"] == ["done"]


def test_no_log_line_can_be_forged(server: Server, client: Client) -> None:
    forged = '","event":"unhandled_error","x":"\\n{\\"event\\":\\"unhandled_error\\"}'
    client.http.post("/v1/tasks", json={"plan": ["log"]}, headers={"X-Correlation-ID": forged.replace(" ", "")})
    job = client.final(client.submit("tasks", {"plan": ["log"]}, X_Correlation_ID='"{}"'))
    assert job["correlation_id"] == '"{}"'
    assert server.log_lines("unhandled_error") == []
