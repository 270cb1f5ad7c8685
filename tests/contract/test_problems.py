"""Problems: every refusal in one form, with one code for each decision."""

import json
from typing import Any

import pytest

from coatcheck.core.limits import REQUEST_HEAD_BYTES_DEFAULT
from harness.http import Client, problem
from harness.raw import chunked, connection, exchange, post_head, post_request, read_answer
from harness.server import QUIET, Server

from .conftest import Serve

DEEPEST = 64
KIB = 1024
MIB = 1024 * KIB


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b"{'a': 1}",
        b"[1,]",
        b'{"a": 1,}',
        b"01",
        b"+1",
        b"1.",
        b".5",
        b'"\t"',
        b"[1] x",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xc0\xaf"',
        '{"a": "ü"}'.encode("utf-16"),
        '"ü"'.encode("latin-1"),
        b'"\xed\xa0\x80"',
        b"NaN",
        b"-Infinity",
        b'{"a": Infinity}',
        b"1e999",
        b"-1e999",
        b'{"a": [1e400]}',
        b"1" * 5000,
        b'{"a": 1, "a": 1}',
        b'{"x": {"a": 1, "\\u0061": 2}}',
        b'[{"a": 1, "b": 2, "a": 3}]',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"\\ud800": 1}',
        b'"a\\u0000b"',
        b'{"\\u0000": 1}',
        b'"a\x00b"',
        nested(DEEPEST + 1),
        nested(100000),
        b'{"a":' * 100000 + b"1" + b"}" * 100000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bb090_what_has_no_single_meaning_is_malformed(client: Client, body: bytes) -> None:
    answer = client.post_bytes("anything", body)
    assert len(problem(answer, 400, "malformed-json")["detail"]) < 500


@pytest.mark.parametrize(
    "body",
    [
        nested(DEEPEST),
        b" \t\r\n1 ",
        b'"\\ud83d\\ude00"',
        b"1e308",
        b"-0.0",
        b"5e-324",
        b'{"": {"a/b~c": []}}',
        b"true",
        b"{}",
        b"123456789012345678901234567890",
        b'"\\u2028\\u0001"',
        '"☃😀"'.encode(),
        b'"\\/"',
        b"0.1",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_bb090_what_has_one_meaning_comes_back_the_same(client: Client, body: bytes) -> None:
    answer = client.post_bytes("anything", body)
    assert answer.status_code == 202, answer.text
    job = client.final(answer.json())
    assert job["status"] == "succeeded", job
    assert job["result"] == client.http.get(job["result_url"]).json() == json.loads(body)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON;CHARSET=UTF-8",
        'application/json; charset="utf-8"',
        "application/vnd.shop+json",
        "application/cloudevents+json; v=1",
        "application/json;",
    ],
)
def test_bb088_json_types_with_or_without_parameters_are_taken(client: Client, content_type: str) -> None:
    assert client.post_bytes("tasks", b"{}", Content_Type=content_type).status_code == 202


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/",
        "json",
        "",
        "application/json+xml",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "*/*",
        "application/json; charset=latin-1",
        "application/json, text/plain",
    ],
)
def test_bb088_other_types_are_415(client: Client, content_type: str) -> None:
    problem(client.post_bytes("tasks", b"{}", Content_Type=content_type), 415, "unsupported-media-type")


@pytest.mark.parametrize("body", [b"{}", b'{"nonsense": 1}', b"{"])
def test_bb089_a_missing_content_type_is_415(server: Server, body: bytes) -> None:
    answer = exchange(server.port, post_request("/v1/tasks", body, headers=[]))
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


def test_bb088_two_content_types_are_415(client: Client) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Type", "text/plain")]
    problem(client.http.post("/v1/tasks", content=b"{}", headers=headers), 415, "unsupported-media-type")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"format": "xml"}, ["/format"]),
        ({"branches": [{"name": "leeds"}, {"name": "X", "shelves": -1}]}, ["/branches/1/name", "/branches/1/shelves"]),
        ({"unknown": 1}, ["/unknown"]),
        ({"branches": [{}]}, ["/branches/0"]),
        ({"a/b~c": {"x/y": "no"}}, ["/a~1b~0c/x~1y"]),
        ([], [""]),
        (None, [""]),
        ({"branches": "leeds"}, ["/branches"]),
    ],
)
def test_invalid_input_points_at_each_fault(client: Client, body: Any, pointers: list[str]) -> None:
    answer = client.post_bytes("/shop/reports", json.dumps(body).encode())
    errors = problem(answer, 422, "invalid-request")["errors"]
    assert all(set(error) == {"pointer", "detail"} and error["detail"] for error in errors)
    found = sorted(error["pointer"] for error in errors)
    # A missing member may be pointed at itself or by the object that lacks it.
    assert [pointer.removesuffix("/name") if pointers == ["/branches/0"] else pointer for pointer in found] == pointers


def test_pointers_lead_into_the_body_that_was_sent(client: Client) -> None:
    answer = client.http.post("/shop/reports", json={"paper": {"name": "X"}})
    pointers = {error["pointer"] for error in problem(answer, 422, "invalid-request")["errors"]}
    assert pointers <= {"/paper", "/paper/name"}


def test_errors_are_bounded_and_do_not_repeat_the_body(client: Client) -> None:
    answer = client.http.post("/shop/reports", json={"branches": [{"name": "S3CRET!" * 10}] * 500})
    assert len(problem(answer, 422, "invalid-request")["errors"]) <= 20
    assert len(answer.content) < 20_000
    assert "S3CRET" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/tasks", {"GET", "HEAD", "POST"}),
        ("DELETE", "/v1/tasks", {"GET", "HEAD", "POST"}),
        ("PATCH", "/v1/tasks/job_x", {"GET", "HEAD", "DELETE"}),
        ("POST", "/v1/tasks/job_x", {"GET", "HEAD", "DELETE"}),
        ("GET", "/v1/tasks/job_x/cancel", {"POST"}),
        ("POST", "/v1/tasks/job_x/result", {"GET", "HEAD"}),
        ("POST", "/v1/tasks/job_x/attempts", {"GET", "HEAD"}),
        ("POST", "/v1/jobs", {"GET", "HEAD"}),
        ("POST", "/livez", {"GET", "HEAD"}),
        ("DELETE", "/openapi.json", {"GET", "HEAD"}),
        ("TRACE", "/v1/tasks", {"GET", "HEAD", "POST"}),
        ("BREW", "/v1/tasks", {"GET", "HEAD", "POST"}),
    ],
)
def test_a_method_that_is_not_there_is_405_with_allow(
    client: Client, method: str, path: str, allowed: set[str]
) -> None:
    answer = client.http.request(method, path)
    if answer.status_code == 400:
        assert method in {"TRACE", "BREW"}, "a head that cannot be parsed"
        return
    problem(answer, 405, "method-not-allowed")
    given = {part.strip() for part in answer.headers["allow"].split(",")}
    assert given - {"OPTIONS"} == allowed


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/tasks/",
        "/v1/nothing",
        "/v1/tasks/job_x/nothing",
        "/v1/tasks//result",
        "/v1//tasks",
        "/V1/tasks",
        "/v1/tasks%2f",
        "/v1/tasks/job_x/result/",
        "/../etc/passwd",
        "/shop",
        "/admin",
        "/favicon.ico",
    ],
)
def test_a_path_that_is_not_there_is_404(client: Client, path: str) -> None:
    problem(client.get(path), 404, "not-found")


def test_a_payload_beyond_the_limit_is_413(client: Client) -> None:
    at_limit = b'{"value": "%s"}' % (b"x" * (MIB - 13))
    assert len(at_limit) == MIB
    assert client.post_bytes("tasks", at_limit).status_code == 202
    problem(client.post_bytes("tasks", at_limit + b" "), 413, "payload-too-large")
    assert client.post_bytes("small", b'{"value": "%s"}' % (b"x" * (2000 - 13))).status_code == 202
    problem(client.post_bytes("small", b'{"value": "%s"}' % (b"x" * (2001 - 13))), 413, "payload-too-large")


def test_a_payload_in_chunks_is_measured_to_the_byte(server: Server) -> None:
    head = post_head("/v1/anything", [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    for size, status in ((MIB, 202), (MIB + 1, 413)):
        text = b'"%s"' % (b"x" * (size - 2))
        parts = [text[start : start + 100_000] for start in range(0, size, 100_000)]
        assert exchange(server.port, head + chunked(*parts)).status == status


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_rest_of_a_body_that_is_too_large_is_drained(server: Server, is_chunked: bool) -> None:
    body = b"x" * (4 * MIB)
    length = ("Transfer-Encoding", "chunked") if is_chunked else ("Content-Length", str(len(body)))
    head = post_head("/v1/tasks", [("Content-Type", "application/json"), length])
    sent = head + (chunked(*[body[: 64 * KIB]] * 64) if is_chunked else body)
    with connection(server.port) as plug:
        plug.sendall(sent)
        answer = read_answer(plug)
    assert (answer.status, answer.code) == (413, "payload-too-large")


def test_a_body_that_is_announced_as_too_large_is_refused_before_it_comes(server: Server) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Length", str(10**12)), ("Expect", "100-continue")]
    with connection(server.port) as plug:
        plug.sendall(post_head("/v1/tasks", headers))
        answer = read_answer(plug)
    assert (answer.status, answer.code) == (413, "payload-too-large")


def test_a_body_that_does_not_come_is_408(serve: Serve) -> None:
    server = serve(settings=QUIET | {"body_timeout_s": "0.5"})
    head = post_head("/v1/tasks", [("Content-Type", "application/json"), ("Content-Length", "20")])
    for part in (b"", b'{"value": '):
        with connection(server.port) as plug:
            plug.settimeout(4)
            plug.sendall(head + part)
            answer = read_answer(plug)
        assert (answer.status, answer.code) == (408, "request-timeout")


def test_headers_beyond_the_limit_are_431(server: Server) -> None:
    many = [(f"X-Filler-{number}", "x" * 1000) for number in range(64)]
    answer = exchange(server.port, post_request("/v1/tasks", b"{}", [("Content-Type", "application/json"), *many]))
    assert answer.status == 431
    if answer.headers["content-type"].startswith("application/problem+json"):
        assert answer.code == "headers-too-large"


def test_headers_up_to_the_limit_are_taken(server: Server) -> None:
    request = post_request("/v1/anything", b"{}", [("Content-Type", "application/json"), ("X-Filler", "")])
    room = REQUEST_HEAD_BYTES_DEFAULT - len(request.removesuffix(b"\r\n{}"))
    for over, status in ((0, 202), (1, 431)):
        full = request.replace(b"X-Filler: ", b"X-Filler: " + b"x" * (room + over))
        assert exchange(server.port, full).status == status


def test_a_request_line_beyond_the_limit_is_refused(server: Server) -> None:
    answer = exchange(server.port, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", "GET")
    assert answer.status in (414, 431)


def test_problems_carry_the_callers_correlation_id(client: Client) -> None:
    body = problem(client.post("tasks", {"nope": 1}, X_Correlation_ID="trace-me"), 422, "invalid-request")
    assert body["correlation_id"] == "trace-me"
    assert "errors" not in problem(client.get("/nothing"), 404, "not-found")


def test_the_type_of_a_problem_is_its_page(client: Client) -> None:
    body = problem(client.get("/nothing"), 404, "not-found")
    assert client.get(body["type"]).status_code == 200


def test_problems_are_given_whatever_is_accepted(client: Client) -> None:
    problem(client.get("/nothing", Accept="text/html"), 404, "not-found")
    problem(client.get("/v1/tasks/job_x", Accept="text/event-stream"), 404, "not-found")


def test_options_is_answered(client: Client) -> None:
    answer = client.http.options("/v1/tasks")
    assert answer.status_code in (200, 204, 405)
    assert "POST" in answer.headers["allow"]
