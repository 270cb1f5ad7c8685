"""Handing in work: headers, times, priorities, and that nothing invalid is ever stored."""

import re
from datetime import UTC, datetime, timedelta, timezone

import httpx
import pytest

from harness.http import Client, JsonObject, problem
from harness.raw import chunked, connection, exchange, post_head, post_request, read_answer
from harness.server import Server
from harness.stage import Stage

from .conftest import Connect, Serve

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def near(text: str, expected: datetime, tolerance_s: float = 2.0) -> bool:
    return abs(instant(text) - expected) < timedelta(seconds=tolerance_s)


@pytest.mark.parametrize("given", ["a", "order-7/b", "x" * 128, "!~", '"quoted"', "a,b;c=d"])
def test_a_correlation_id_is_echoed_and_kept(client: Client, given: str) -> None:
    answer = client.post("tasks", {}, X_Correlation_ID=given)
    assert answer.headers["x-correlation-id"] == answer.json()["correlation_id"] == given
    assert client.get(answer.headers["location"], X_Correlation_ID="mine").headers["x-correlation-id"] == "mine"


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"two words", b"caf\xc3\xa9", b"\xff", b"tab\there"])
def test_a_correlation_id_that_is_not_one_is_replaced(client: Client, given: bytes) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=[(b"X-Correlation-ID", given)])
    assert answer.status_code == 202
    made = answer.headers["x-correlation-id"]
    assert re.fullmatch(r"[!-~]{1,128}", made)
    assert made.encode() != given
    assert answer.json()["correlation_id"] == made


def test_every_answer_has_a_correlation_id(client: Client) -> None:
    for path in ("/livez", "/nothing/here", "/v1/tasks/job_x", "/openapi.json", "/docs", "/metrics"):
        assert client.get(path).headers["x-correlation-id"], path
        assert client.get(path, X_Correlation_ID="c-1").headers["x-correlation-id"] == "c-1", path


def test_the_correlation_id_reaches_the_handler(client: Client) -> None:
    job = client.final(client.submit("facts", {}, X_Correlation_ID="seen-inside", Job_Deadline="100"))
    facts = job["result"]
    assert (facts["id"], facts["attempt"], facts["operation"]) == (job["id"], 1, "facts")
    assert (facts["correlation_id"], facts["tenant"]) == ("seen-inside", "default")
    assert near(facts["deadline"], instant(job["deadline_at"]), 0.002)
    assert 80 < facts["seconds_left"] <= 100


@pytest.mark.parametrize("value", [TRACEPARENT, "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-00", ""])
def test_a_traceparent_never_stands_in_the_way(client: Client, value: str) -> None:
    assert client.post("tasks", {}, traceparent=value).status_code == 202


@pytest.mark.parametrize("seconds", ["1", "60", "0.5", "3600"])
def test_start_after_seconds_is_from_now(client: Client, seconds: str) -> None:
    job = client.submit("tasks", {}, Job_Start_After=seconds)
    assert near(job["available_at"], datetime.now(UTC) + timedelta(seconds=float(seconds)))
    client.cancel(job)


@pytest.mark.parametrize("hours", [5.5, -11, 0, 14])
def test_bb116_an_instant_is_the_same_in_every_zone(client: Client, hours: float) -> None:
    at = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    written = at.astimezone(timezone(timedelta(hours=hours))).isoformat()
    for text in (written, written.replace("T", "t"), at.isoformat().replace("+00:00", "Z")):
        job = client.submit("tasks", {}, Job_Start_After=text, Job_Deadline=(at + timedelta(hours=1)).isoformat())
        assert instant(job["available_at"]) == at, text
        assert instant(job["deadline_at"]) == at + timedelta(hours=1)
        client.cancel(job)


def test_an_instant_with_a_fraction_keeps_its_milliseconds(client: Client) -> None:
    at = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=123000)
    job = client.submit("tasks", {}, Job_Start_After=at.isoformat())
    assert instant(job["available_at"]) == at
    client.cancel(job)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1",
        "1e3",
        "1h",
        "NaN",
        "Infinity",
        "2026-13-01T00:00:00Z",
        "2030-01-01",
        "2030-02-30T00:00:00Z",
        "2030-01-01T00:00:00",
        "2030-01-01T25:00:00Z",
        "2030-01-01T00:00:00+99:00",
        "20300101T000000Z",
        "1,2",
        "\u0661",
        "9999-12-31T23:59:59ZZ",
        "99999999999999999999",
        "1e999",
        "0x10",
        "1_000",
        "+5:00",
    ],
)
@pytest.mark.parametrize("header", ["Job-Start-After", "Job-Deadline"])
def test_bb028_bb116_times_that_are_none_are_400(client: Client, header: str, text: str) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=[(header.encode(), text.encode())])
    assert "job" in problem(answer, 400, "invalid-header")["detail"].lower()


@pytest.mark.parametrize("deadline", ["0", "1969-12-31T23:59:59Z", "2001-01-01T00:00:00Z"])
def test_bb028_a_deadline_that_passed_is_400(client: Client, deadline: str) -> None:
    problem(client.post("tasks", {}, Job_Deadline=deadline), 400, "invalid-header")


def test_a_deadline_must_lie_after_the_start(client: Client) -> None:
    problem(client.post("tasks", {}, Job_Start_After="60", Job_Deadline="60"), 400, "invalid-header")
    problem(client.post("tasks", {}, Job_Start_After="60", Job_Deadline="59"), 400, "invalid-header")
    client.cancel(client.submit("tasks", {}, Job_Start_After="60", Job_Deadline="61"))


def test_bb028_a_start_of_zero_or_in_the_past_is_now(client: Client) -> None:
    for start in ("0", "1969-12-31T23:59:59Z", "2001-01-01T00:00:00+05:30"):
        answer = client.post("tasks", {}, Job_Start_After=start)
        if answer.status_code == 202:
            assert client.final(answer.json(), 10)["status"] == "succeeded"
        else:
            problem(answer, 400, "invalid-header")
    assert client.post("tasks", {}, Job_Start_After="0").status_code == 202


def test_bb028_the_last_year_and_leap_seconds_are_exact_or_400(client: Client) -> None:
    for text in ("9999-12-31T23:59:59Z", "2030-06-30T23:59:60Z"):
        answer = client.post("tasks", {}, Job_Deadline=text)
        if answer.status_code == 202:
            assert near(answer.json()["deadline_at"], instant(text.replace(":60Z", ":59Z")))
        else:
            problem(answer, 400, "invalid-header")


def test_bb116_the_servers_time_zone_changes_nothing(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Apia")
    client = connect(serve())
    day = (datetime.now(UTC) + timedelta(days=200)).date()
    job = client.submit("tasks", {}, Job_Start_After=f"{day}T12:00:00+05:30")
    assert job["available_at"] == f"{day}T06:30:00.000Z"
    assert near(job["created_at"], datetime.now(UTC))
    assert near(client.final(client.submit("tasks", {}))["finished_at"], datetime.now(UTC), 10)


def test_an_operation_may_have_a_deadline_of_its_own_and_a_largest(client: Client) -> None:
    job = client.submit("dated", {})
    assert near(job["deadline_at"], datetime.now(UTC) + timedelta(minutes=30))
    assert near(
        client.submit("dated", {}, Job_Deadline="3590")["deadline_at"], datetime.now(UTC) + timedelta(hours=1), 12
    )
    problem(client.post("dated", {}, Job_Deadline="3700"), 400, "invalid-header")


def test_a_start_beyond_the_operations_own_deadline_is_400(client: Client) -> None:
    problem(client.post("dated", {}, Job_Start_After="2700"), 400, "invalid-header")
    assert client.post("dated", {}, Job_Start_After="2700", Job_Deadline="3500").status_code == 202


def test_bb001_work_does_not_start_before_its_time(client: Client, stage: Stage) -> None:
    jobs = [client.submit("tasks", stage.task("return"), Job_Start_After="1.2") for _ in range(20)]
    assert stage.starts == []
    for job in jobs:
        done = client.final(job)
        assert instant(done["started_at"]) >= instant(job["available_at"])
        assert done["attempt"] == 1
    assert stage.starts == [1] * 20


@pytest.mark.parametrize("value", ["-1", "10", "5.0", "high", "", "1,2", "NaN", "0x1", "\u0663"])
def test_a_priority_that_is_none_is_400(client: Client, value: str) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=[(b"Job-Priority", value.encode())])
    problem(answer, 400, "invalid-header")


def test_lower_priorities_go_first_and_five_is_the_default(client: Client, stage: Stage) -> None:
    gate = client.submit("one-by-one", stage.task("wait"))
    client.running(gate)
    order: list[JsonObject] = [
        client.submit("one-by-one", stage.task("return"), Job_Priority="9"),
        client.submit("one-by-one", stage.task("return"), Job_Priority="5"),
        client.submit("one-by-one", stage.task("return")),
        client.submit("one-by-one", stage.task("return"), Job_Priority="0"),
    ]
    stage.go()
    done = [client.final(job) for job in order]
    by_start = sorted(done, key=lambda job: (job["started_at"], job["finished_at"]))
    assert [order.index(next(job for job in order if job["id"] == late["id"])) for late in by_start] == [3, 1, 2, 0]


def test_an_operation_may_narrow_the_priorities(client: Client) -> None:
    for value in ("2", "8"):
        problem(client.post("ranked", {}, Job_Priority=value), 400, "invalid-header")
    for value in ("3", "7"):
        assert client.post("ranked", {}, Job_Priority=value).status_code == 202


@pytest.mark.parametrize("header", ["Job-Priority", "Job-Deadline", "Job-Start-After", "Idempotency-Key"])
def test_a_header_that_stands_twice_is_400(client: Client, header: str) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=[(header, "5"), (header, "6")])
    problem(answer, 400, "invalid-header")


def test_the_body_is_validated_before_anything_is_stored(client: Client) -> None:
    before = client.get("/v1/jobs?limit=1").json()["jobs"]
    problem(client.post("/shop/reports", {"format": "xml"}), 422, "invalid-request")
    assert client.get("/v1/jobs?limit=1").json()["jobs"] == before


def test_bb048_a_chunked_body_is_as_good_as_one_with_a_length(server: Server, client: Client) -> None:
    head = post_head("/v1/tasks", [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    answer = exchange(server.port, head + chunked(b'{"val', b'ue": "in ', b'pieces"}'))
    assert answer.status == 202
    assert client.final(answer.json)["result"]["value"] == "in pieces"


def test_bb048_the_size_limit_holds_for_chunks_too(server: Server) -> None:
    head = post_head("/v1/small", [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    answer = exchange(server.port, head + chunked(b'{"value": "', *[b"x" * 500] * 6, b'"}'))
    assert (answer.status, answer.code) == (413, "payload-too-large")


def test_expect_100_continue_is_served(server: Server) -> None:
    body = b'{"value": 1}'
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Expect", "100-continue")]
    with connection(server.port) as plug:
        plug.sendall(post_head("/v1/tasks", headers))
        assert plug.recv(1000).startswith(b"HTTP/1.1 100")
        plug.sendall(body)
        assert read_answer(plug).status == 202


def test_requests_may_follow_each_other_on_one_connection(server: Server) -> None:
    with connection(server.port) as plug:
        ids = set()
        for _ in range(3):
            plug.sendall(post_request("/v1/tasks", b"{}"))
            ids.add(read_answer(plug).json["id"])
    assert len(ids) == 3


def test_bb047_a_handler_never_delays_the_answer(client: Client, stage: Stage) -> None:
    slow = [client.post("tasks", stage.task("wait"), Prefer="respond-async") for _ in range(20)]
    assert all(answer.elapsed < timedelta(seconds=2) for answer in slow)
    assert {answer.status_code for answer in slow} == {202}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
        {"Forwarded": "host=evil.example;proto=https", "X-Forwarded-Prefix": "/evil.example"},
        {"X-Original-URL": "/evil.example", "X-Rewrite-URL": "/evil.example"},
    ],
)
def test_bb043_hosts_of_untrusted_peers_are_never_reflected(client: Client, headers: dict[str, str]) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=headers)
    assert answer.status_code == 202
    assert answer.headers["location"].startswith("/v1/tasks/")
    for url in (answer.headers["location"], "/v1/tasks?limit=1", "/openapi.json"):
        seen: httpx.Response = client.http.get(url, headers=headers)
        assert "evil.example" not in seen.text + str(seen.headers)
