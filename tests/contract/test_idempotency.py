"""Idempotency: one key, one job, whatever happens to the answers."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject, problem
from harness.stage import Stage


@pytest.fixture
def key() -> str:
    return uuid4().hex


def assert_replayed(answer: httpx.Response, job: JsonObject) -> JsonObject:
    assert answer.status_code == 202, answer.text
    assert answer.headers["idempotent-replayed"] == "true"
    assert answer.headers["location"] == job["status_url"]
    replayed: JsonObject = answer.json()
    assert replayed["id"] == job["id"]
    return replayed


def test_the_same_key_and_body_is_the_same_job(client: Client, key: str) -> None:
    first = client.post("tasks", {"value": 1}, Idempotency_Key=key)
    assert "idempotent-replayed" not in first.headers
    assert_replayed(client.post("tasks", {"value": 1}, Idempotency_Key=key), first.json())


def test_bb036_the_key_finds_its_job_in_every_state(client: Client, stage: Stage, key: str) -> None:
    def send(name: str, body: JsonObject, **headers: str) -> httpx.Response:
        return client.post("tasks", body, Idempotency_Key=key + name, **headers)

    queued = send("queued", {}, Job_Start_After="3600").json()
    assert assert_replayed(send("queued", {}), queued)["status"] == "queued"
    client.cancel(queued)
    assert assert_replayed(send("queued", {}), queued)["status"] == "cancelled"
    running = send("running", stage.task("wait")).json()
    client.running(running)
    assert assert_replayed(send("running", stage.task("wait")), running)["status"] == "running"
    stage.go()
    client.final(running)
    assert assert_replayed(send("running", stage.task("wait")), running)["status"] == "succeeded"
    failed = send("failed", {"plan": ["fail:invalid_input"]}).json()
    client.final(failed)
    assert assert_replayed(send("failed", {"plan": ["fail:invalid_input"]}), failed)["status"] == "failed"


def test_another_body_is_refused(client: Client, key: str) -> None:
    client.submit("tasks", {"value": 1}, Idempotency_Key=key)
    problem(client.post("tasks", {"value": 2}, Idempotency_Key=key), 422, "idempotency-key-reused")


def test_bb032_a_refused_body_does_not_spoil_the_key(client: Client, key: str) -> None:
    job = client.submit("tasks", {"value": "A"}, Idempotency_Key=key)
    problem(client.post("tasks", {"value": "B"}, Idempotency_Key=key), 422, "idempotency-key-reused")
    assert_replayed(client.post("tasks", {"value": "A"}, Idempotency_Key=key), job)
    problem(client.post("tasks", {"value": "B"}, Idempotency_Key=key), 422, "idempotency-key-reused")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'{"plan": ["return"], "value": 1}', b'{"value":1,"plan":["return"]}'),
        (b'{"value": 1}', b' \r\n{ "value" :\t1 } '),
        (b'{"value": 1}', b'{"value": 1.0}'),
        (b'{"value": 100}', b'{"value": 1e2}'),
        (b'{"value": 0}', b'{"value": -0.0}'),
        (b'{"value": "\\u00e9"}', '{"value": "é"}'.encode()),
        (b'{"value": {"a": 1, "b": [{"d": 1, "c": 2}]}}', b'{"value": {"b": [{"c": 2, "d": 1}], "a": 1}}'),
    ],
)
def test_bodies_that_mean_the_same_have_one_fingerprint(client: Client, key: str, first: bytes, second: bytes) -> None:
    answer = client.post_bytes("tasks", first, Idempotency_Key=key)
    assert answer.status_code == 202
    assert_replayed(client.post_bytes("tasks", second, Idempotency_Key=key), answer.json())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'{"value": 9007199254740992}', b'{"value": 9007199254740993}'),
        (b'{"value": 9007199254740993}', b'{"value": 9007199254740993.0}'),
        (b'{"value": [1, 2]}', b'{"value": [2, 1]}'),
        (b'{"value": 1}', b'{"value": "1"}'),
        (b'{"value": 1}', b'{"value": true}'),
        (b'{"value": null}', b"{}"),
        (b'{"plan": ["return"]}', b"{}"),
        ('{"value": "é"}'.encode(), '{"value": "e\u0301"}'.encode()),
        (b'{"value": 0.1}', b'{"value": 0.10000000000000002}'),
    ],
)
def test_bodies_that_differ_have_two_fingerprints(client: Client, key: str, first: bytes, second: bytes) -> None:
    assert client.post_bytes("tasks", first, Idempotency_Key=key).status_code == 202
    problem(client.post_bytes("tasks", second, Idempotency_Key=key), 422, "idempotency-key-reused")


def test_headers_are_no_part_of_the_fingerprint_and_the_first_count(client: Client, key: str) -> None:
    job = client.submit("tasks", {}, Idempotency_Key=key, Job_Start_After="3600", X_Correlation_ID="first")
    again = client.post("tasks", {}, Idempotency_Key=key, Job_Priority="1", Job_Deadline="9", X_Correlation_ID="second")
    replayed = assert_replayed(again, job)
    assert (replayed["available_at"], replayed["deadline_at"]) == (job["available_at"], None)
    assert again.headers["x-correlation-id"] == "second"
    assert replayed["correlation_id"] == "first"
    client.cancel(job)


@pytest.mark.parametrize("value", ["k%s", "%s/a:b;c=d,e", "{%s}", "*%s", "%%_%s", "'%s'", "<b>%s</b>"])
def test_bb111_a_key_is_opaque_and_quoted_or_bare_the_same(client: Client, key: str, value: str) -> None:
    bare = value % key
    job = client.submit("tasks", {"value": bare}, Idempotency_Key=bare)
    assert_replayed(client.post("tasks", {"value": bare}, Idempotency_Key=f'"{bare}"'), job)
    assert client.submit("tasks", {"value": bare}, Idempotency_Key=bare + "x")["id"] != job["id"]


def test_escapes_in_a_quoted_key_are_undone(client: Client, key: str) -> None:
    job = client.submit("tasks", {}, Idempotency_Key=f'"{key}\\"\\\\"')
    assert_replayed(client.post("tasks", {}, Idempotency_Key=f'{key}"\\'), job)


def test_keys_of_up_to_255_characters_are_taken(client: Client, key: str) -> None:
    longest = key.ljust(255, "k")
    job = client.submit("tasks", {}, Idempotency_Key=longest)
    assert_replayed(client.post("tasks", {}, Idempotency_Key=f'"{longest}"'), job)
    problem(client.post("tasks", {}, Idempotency_Key=longest + "k"), 400, "invalid-header")


@pytest.mark.parametrize(
    "value", [b"", b'""', b'" "', b"two words", b"caf\xc3\xa9", b'"open', b'"a"b', b'"a" "b"', b"a\tb"]
)
def test_bb031_a_key_that_is_none_is_400(client: Client, value: bytes) -> None:
    answer = client.http.post("/v1/tasks", json={}, headers=[(b"Idempotency-Key", value)])
    problem(answer, 400, "invalid-header")


def test_bb031_without_a_key_each_request_is_its_own_job(client: Client) -> None:
    assert len({client.submit("tasks", {})["id"] for _ in range(3)}) == 3


def test_a_key_that_is_required_must_be_there(client: Client, key: str) -> None:
    problem(client.post("keyed", {}), 400, "idempotency-key-required")
    assert client.post("keyed", {}, Idempotency_Key=key).status_code == 202


def test_bb040_keys_belong_to_one_operation(client: Client, key: str) -> None:
    jobs = [client.submit(operation, {}, Idempotency_Key=key) for operation in ("tasks", "anything", "keyed")]
    assert len({job["id"] for job in jobs}) == 3


def test_bb040_a_refused_request_uses_up_no_key(client: Client, key: str) -> None:
    problem(client.post("tasks", {"unknown": 1}, Idempotency_Key=key), 422, "invalid-request")
    problem(client.post_bytes("tasks", b"{", Idempotency_Key=key), 400, "malformed-json")
    problem(
        client.post_bytes("tasks", b"{}", Idempotency_Key=key, Content_Type="text/plain"), 415, "unsupported-media-type"
    )
    problem(client.post("tasks", {}, Idempotency_Key=key, Job_Priority="99"), 400, "invalid-header")
    answer = client.post("tasks", {"value": 1}, Idempotency_Key=key)
    assert answer.status_code == 202
    assert "idempotent-replayed" not in answer.headers


def test_bb033_fifty_at_once_are_one_job(client: Client, stage: Stage, key: str) -> None:
    limits = httpx.Limits(max_connections=50)
    with httpx.Client(base_url=client.http.base_url, limits=limits, timeout=30) as many, ThreadPoolExecutor(50) as pool:
        body = stage.task("return")
        calls = [pool.submit(many.post, "/v1/tasks", json=body, headers={"Idempotency-Key": key}) for _ in range(50)]
        answers = [call.result() for call in calls]
    accepted = [answer for answer in answers if answer.status_code == 202]
    for other in (answer for answer in answers if answer.status_code != 202):
        problem(other, 409, "idempotency-key-in-flight")
        assert other.headers["retry-after"]
    assert len({answer.json()["id"] for answer in accepted}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in accepted) == 1
    assert client.final(accepted[0].json())["status"] == "succeeded"
    assert stage.starts == [1]


def test_two_bodies_at_once_are_one_job_and_refusals(client: Client, key: str) -> None:
    with httpx.Client(base_url=client.http.base_url, timeout=30) as many, ThreadPoolExecutor(8) as pool:
        headers = {"Idempotency-Key": key}
        calls = [pool.submit(many.post, "/v1/tasks", json={"value": n % 2}, headers=headers) for n in range(16)]
        answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} == {202, 422}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 202}) == 1


def test_bb039_a_key_is_kept_for_its_own_window(client: Client, key: str) -> None:
    job = client.final(client.submit("short-key", {}, Idempotency_Key=key))
    later: list[JsonObject] = []

    def send() -> bool:
        later.append(client.submit("short-key", {}, Idempotency_Key=key))
        return bool(later[-1]["id"] != job["id"])

    wait_until(send, "the key's window to end", 15)
    assert client.job(job) == job, "the old job is still readable"
    assert client.final(later[-1])["status"] == "succeeded"


def test_the_key_of_an_expired_job_names_it(client: Client, key: str) -> None:
    job = client.final(client.submit("tasks", {}, Idempotency_Key=key))
    client.erase(job)
    body = problem(client.post("tasks", {}, Idempotency_Key=key), 409, "job-expired")
    assert job["status_url"] in str(body)
    other = client.post("tasks", {"value": "other"}, Idempotency_Key=key)
    assert other.status_code in (409, 422)


def test_a_replay_is_as_quick_as_a_first_answer(client: Client, stage: Stage, key: str) -> None:
    client.submit("tasks", stage.task("wait"), Idempotency_Key=key)
    again = client.post("tasks", stage.task("wait"), Idempotency_Key=key)
    assert again.elapsed < timedelta(seconds=2)
    assert int(again.headers["retry-after"]) >= 1


def test_the_window_is_published(client: Client) -> None:
    document = client.get("/openapi.json").text
    assert "24 h" in document or "86400" in document or "24 hours" in document
