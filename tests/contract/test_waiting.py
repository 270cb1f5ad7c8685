"""Waiting and polling: Prefer, Retry-After, ETags."""

from datetime import timedelta

import httpx
import pytest

from harness.http import Client, problem
from harness.server import Server
from harness.stage import Stage

from .conftest import Connect, Serve

QUICKLY = timedelta(seconds=2)


def test_every_answer_about_an_unfinished_job_says_when_to_ask_again(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"), Idempotency_Key=f"retry-after-{id(stage)}")
    client.running(job)
    first = client.get(job["status_url"])
    unchanged = client.get(job["status_url"], If_None_Match=first.headers["etag"])
    replay = client.post("tasks", stage.task("wait"), Idempotency_Key=f"retry-after-{id(stage)}")
    for answer in (first, unchanged, replay, client.get(job["result_url"])):
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert unchanged.status_code == 304


def test_retry_after_grows_to_the_start_of_work_that_is_not_due(client: Client) -> None:
    job = client.submit("tasks", {}, Job_Start_After="3600")
    assert int(client.get(job["status_url"]).headers["retry-after"]) >= 40
    client.cancel(job)


def test_an_etag_is_strong_and_changes_with_the_version(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    client.running(job)
    stage.tell_progress(1, 2, "half")
    client.until(job, lambda now: now["progress"], "progress")
    first = client.get(job["status_url"])
    assert first.headers["etag"].startswith('"')
    assert client.get(job["status_url"]).headers["etag"] == first.headers["etag"]
    stage.go()
    client.final(job)
    assert client.get(job["status_url"]).headers["etag"] != first.headers["etag"]


def test_an_unchanged_job_is_304_also_for_weakened_etags_and_lists(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    answer = client.get(job["status_url"])
    etag = answer.headers["etag"]
    for given in (etag, f"W/{etag}", f'"other", {etag}', f'W/"other" ,W/{etag}', "*"):
        unchanged = client.get(job["status_url"], If_None_Match=given)
        assert (unchanged.status_code, unchanged.content) == (304, b""), given
        assert unchanged.headers["etag"] == etag
        assert unchanged.headers["cache-control"] == answer.headers["cache-control"]
        assert unchanged.headers["vary"] == answer.headers["vary"]
    for given in ('"other"', etag.strip('"'), "", "nonsense"):
        assert client.get(job["status_url"], If_None_Match=given).status_code == 200, given


def test_status_is_private_and_always_revalidated(client: Client) -> None:
    answer = client.get(client.submit("tasks", {})["status_url"])
    assert {part.strip() for part in answer.headers["cache-control"].split(",")} == {"private", "no-cache"}
    assert {part.strip().lower() for part in answer.headers["vary"].split(",")} >= {"accept", "prefer"}


def test_post_may_wait_for_the_end(client: Client) -> None:
    answer = client.post("tasks", {"value": 7}, Prefer="wait=10")
    assert answer.status_code == 200
    assert answer.json()["result"]["value"] == 7
    assert answer.headers["preference-applied"] == "wait=10"
    assert answer.headers["location"] == answer.json()["status_url"]
    assert "sunset" in answer.headers


def test_post_sees_a_failure_too(client: Client) -> None:
    answer = client.post("tasks", {"plan": ["fail:invalid_input"]}, Prefer="wait=10")
    assert (answer.status_code, answer.json()["status"]) == (200, "failed")


def test_post_that_waited_in_vain_is_202(client: Client, stage: Stage) -> None:
    answer = client.post("tasks", stage.task("wait"), Prefer="wait=1")
    assert answer.status_code == 202
    assert timedelta(seconds=0.9) <= answer.elapsed < timedelta(seconds=4)
    assert answer.json()["done"] is False
    assert answer.headers["retry-after"]


def test_waits_are_capped(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve("--wait-max", "1"))
    answer = client.post("tasks", stage.task("wait"), Prefer="wait=3600")
    assert answer.status_code == 202
    assert answer.elapsed < timedelta(seconds=5)
    assert answer.headers["preference-applied"] == "wait=1"


@pytest.mark.parametrize("prefer", ["respond-async", "wait=0", "wait=0, respond-async"])
def test_respond_async_alone_answers_at_once(client: Client, stage: Stage, prefer: str) -> None:
    answer = client.post("tasks", stage.task("wait"), Prefer=prefer)
    assert answer.status_code == 202
    assert answer.elapsed < QUICKLY


def test_respond_async_with_wait_waits_that_long(client: Client, stage: Stage) -> None:
    quick = client.post("tasks", {}, Prefer="respond-async, wait=10")
    assert quick.status_code == 200
    slow = client.post("tasks", stage.task("wait"), Prefer="respond-async, wait=1")
    assert slow.status_code == 202
    assert slow.elapsed >= timedelta(seconds=0.9)
    applied = {part.strip() for part in slow.headers["preference-applied"].split(",")}
    assert applied == {"respond-async", "wait=1"}


@pytest.mark.parametrize(
    "prefer",
    [
        "wait",
        "wait=",
        "wait=soon",
        "wait=-1",
        "wait=1.5",
        "wait=1e3",
        "handling=lenient",
        "=",
        ";;;",
        ",,",
        "wait==5",
        "return=minimal",
        '"wait=5"',
        "wait 5",
        "xwait=5",
        "wait=\u0663",
    ],
)
def test_malformed_or_unknown_preferences_are_ignored(client: Client, stage: Stage, prefer: str) -> None:
    body = stage.task("wait")
    answer = client.http.post("/v1/tasks", json=body, headers=[(b"Prefer", prefer.encode())])
    assert answer.status_code == 202
    assert answer.elapsed < QUICKLY
    assert "wait" not in answer.headers.get("preference-applied", "")


@pytest.mark.parametrize(
    "prefer",
    [
        ["WAIT=1"],
        ["wait = 1"],
        ['wait="1"'],
        ["handling=strict; x=y, wait=1"],
        ["wait=1; foo=bar"],
        ["wait=1, wait=9"],
        ["respond-async", "wait=1"],
        ["wait=01"],
    ],
)
def test_preferences_are_read_as_rfc_7240_says(client: Client, stage: Stage, prefer: list[str]) -> None:
    headers = [("Prefer", value) for value in prefer]
    answer = client.http.post("/v1/tasks", json=stage.task("wait"), headers=headers)
    assert answer.status_code == 202
    assert timedelta(seconds=0.9) <= answer.elapsed < timedelta(seconds=4)
    assert "wait=1" in answer.headers["preference-applied"]


def test_get_waits_for_the_end(client: Client) -> None:
    job = client.submit("tasks", {}, Job_Start_After="1")
    answer = client.get(job["status_url"], Prefer="wait=10")
    assert answer.json()["status"] == "succeeded"
    assert answer.headers["preference-applied"] == "wait=10"


def test_get_with_an_etag_waits_for_any_newer_version(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    client.running(job)
    seen = client.get(job["status_url"])
    stage.tell_progress(1, 2, "half")
    newer = client.get(job["status_url"], Prefer="wait=10", If_None_Match=seen.headers["etag"])
    assert newer.status_code == 200
    assert newer.json()["version"] > seen.json()["version"]
    assert newer.json()["status"] == "running"
    assert newer.elapsed < timedelta(seconds=5)


def test_get_with_an_etag_that_waited_in_vain_is_304(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    etag = client.get(job["status_url"]).headers["etag"]
    answer = client.get(job["status_url"], Prefer="wait=1", If_None_Match=etag)
    assert answer.status_code == 304
    assert answer.elapsed >= timedelta(seconds=0.9)
    assert answer.headers["retry-after"]


def test_get_of_a_finished_job_never_waits(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    etag = client.get(job["status_url"]).headers["etag"]
    for headers in ({}, {"If_None_Match": etag}):
        assert client.get(job["status_url"], Prefer="wait=10", **headers).elapsed < QUICKLY


def test_a_wait_ends_at_a_cancel(client: Client, stage: Stage) -> None:
    with client.stream(client.submit("tasks", stage.task("wait"), Job_Start_After="3600")) as events:
        job = next(events).data
        client.cancel(job)
        assert client.get(job["status_url"], Prefer="wait=10").json()["status"] == "cancelled"


def test_a_replay_may_wait_too(client: Client) -> None:
    key = {"Idempotency_Key": "replay-waits", "Job_Start_After": "1"}
    first = client.post("short-key", {}, **key)
    assert first.status_code == 202
    again = client.post("short-key", {}, **key, Prefer="wait=10")
    assert again.status_code == 200
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("text/html, application/xml;q=0.9, */*;q=0.8", 200),
        ("application/json;q=0.1, text/html", 200),
        ("text/html", 406),
        ("image/png, application/json;q=0", 406),
        ("application/problem+json", 406),
    ],
)
def test_a_form_that_does_not_exist_is_406(client: Client, accept: str, status: int) -> None:
    job = client.submit("anything", {})
    answer = client.get(job["status_url"], Accept=accept)
    if status == 406:
        problem(answer, 406, "not-acceptable")
    else:
        assert answer.status_code == status


def test_waiting_clients_hold_nobody_up(server: Server, client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    with httpx.Client(base_url=server.url, timeout=httpx.Timeout(30, read=0.2)) as impatient:
        for _ in range(5):
            with pytest.raises(httpx.ReadTimeout):
                impatient.get(job["status_url"], headers={"Prefer": "wait=10"})
    assert client.final(client.submit("tasks", {}), 10)["status"] == "succeeded"
