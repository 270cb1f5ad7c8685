"""Resources and Promises: cancelling is at once, soon or never, and always bounded."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject, problem
from harness.processes import is_alive, wait_until_dead
from harness.server import QUIET
from harness.stage import Stage

from .conftest import Connect, Serve

KINDS = ["tasks", "thread-tasks", "process-tasks"]


def queued(client: Client) -> JsonObject:
    return client.submit("tasks", {}, Job_Start_After="3600")


def test_a_queued_job_is_cancelled_at_once(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("return"), Job_Start_After="3600")
    answer = client.cancel(job, "changed my mind ☃")
    assert answer.status_code == 200
    done = answer.json()
    assert (done["status"], done["done"], done["cancel_requested"]) == ("cancelled", True, True)
    assert done["cancel_reason"] == "changed my mind ☃"
    assert (done["attempt"], done["error"]) == (0, None)
    assert client.job(job) == done
    assert stage.starts == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_running_job_is_told_at_the_next_heartbeat(client: Client, stage: Stage, kind: str) -> None:
    job = client.submit(kind, stage.task("wait"))
    client.running(job)
    stage.wait_for_starts()
    answer = client.cancel(job, "enough")
    assert answer.status_code == 202
    assert int(answer.headers["retry-after"]) >= 1
    told = answer.json()
    assert (told["status"], told["done"], told["cancel_requested"]) == ("running", False, True)
    assert told["cancel_reason"] == "enough"
    done = client.final(job, 10)
    assert (done["status"], done["cancel_reason"]) == ("cancelled", "enough")
    assert stage.ends == ["stopped True"]
    assert [attempt["outcome"] for attempt in client.attempts(job)] == ["cancelled"]


def test_repeating_a_cancel_is_safe_and_the_first_reason_stays(client: Client, stage: Stage) -> None:
    job = queued(client)
    first = client.cancel(job, "first")
    again = client.cancel(job, "second")
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    running = client.submit("tasks", stage.task("deaf"))
    client.running(running)
    assert [client.cancel(running, reason).status_code for reason in ("one", "two")] == [202, 202]
    assert client.job(running)["cancel_reason"] == "one"
    stage.go()
    client.final(running)


def test_twenty_cancels_at_once_are_one(client: Client) -> None:
    job = queued(client)
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(client.cancel, job, str(number)) for number in range(20)]
        seen = [answer.result() for answer in answers]
    assert {answer.status_code for answer in seen} == {200}
    assert len({answer.text for answer in seen}) == 1


def test_a_finished_job_cannot_be_cancelled(client: Client) -> None:
    for plan in ("return", "fail:invalid_input"):
        job = client.final(client.submit("tasks", {"plan": [plan]}))
        problem(client.cancel(job), 409, "job-already-finished")
        assert client.job(job) == job


def test_bb056_cancelling_an_unknown_job_is_404(client: Client, stage: Stage) -> None:
    problem(client.http.post("/v1/tasks/job_01kaaaaaaaaaaaaaaaaaaaaaaa/cancel"), 404, "not-found")
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    assert client.cancel(job).status_code == 202


@pytest.mark.parametrize("kind", ["tasks", "thread-tasks"])
def test_bb026_a_failure_after_a_cancel_is_no_retry(client: Client, stage: Stage, kind: str) -> None:
    job = client.submit(kind, stage.task("wait-raise"))
    client.running(job)
    client.cancel(job)
    stage.go()
    assert client.final(job)["status"] == "cancelled"
    assert stage.starts == [1]


def test_bb049_bb050_a_cancel_before_workers_come_means_it_never_runs(
    serve: Serve, connect: Connect, stage: Stage
) -> None:
    client = connect(serve("--roles", "api"))
    doomed = [client.submit("tasks", stage.task("return")) for _ in range(20)]
    last = client.submit("tasks", stage.task("return"))
    assert {client.cancel(job).status_code for job in doomed} == {200}
    serve("--roles", "worker")
    assert client.final(last)["status"] == "succeeded"
    assert len(stage.starts) == 1
    assert {client.job(job)["status"] for job in doomed} == {"cancelled"}


@pytest.mark.parametrize("kind", ["tasks", "thread-tasks"])
def test_bb051_a_deaf_handler_is_fenced_off_within_the_grace(client: Client, stage: Stage, kind: str) -> None:
    job = client.submit(kind, stage.task("deaf", value="too late"))
    client.running(job)
    assert client.cancel(job).status_code == 202
    done = client.final(job, 10)
    assert done["status"] == "cancelled"
    took = datetime.fromisoformat(done["finished_at"]) - datetime.fromisoformat(done["started_at"])
    assert took < timedelta(seconds=8)
    stage.go()
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
    assert client.job(job) == done, "what the deaf handler does later changes nothing"


def test_bb051_the_process_of_a_deaf_handler_is_killed(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve())
    for kind in KINDS:
        job = client.submit(kind, stage.task("deaf"))
        stage.wait_for_starts(KINDS.index(kind) + 1)
        pid = stage.pids[-1]
        assert pid != os.getpid()
        client.cancel(job)
        assert client.final(job, 15)["status"] == "cancelled"
        wait_until_dead(pid)
        assert client.final(client.submit("tasks", {}))["status"] == "succeeded"


def test_the_neighbours_of_a_deaf_handler_finish_first(
    serve: Serve, connect: Connect, stage: Stage, neighbour: Stage
) -> None:
    client = connect(serve())
    deaf = client.submit("single-try", stage.task("deaf"))
    near = client.submit("single-try", neighbour.task("wait"))
    stage.wait_for_starts()
    neighbour.wait_for_starts()
    assert stage.pids == neighbour.pids
    client.cancel(deaf)
    assert client.final(deaf, 15)["status"] == "cancelled"
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded", "another runner takes new work"
    assert is_alive(stage.pids[0])
    neighbour.go()
    assert client.final(near)["status"] == "succeeded"
    wait_until_dead(stage.pids[0])


def test_a_handler_that_blocks_the_loop_is_cancelled_and_named_in_the_log(
    serve: Serve, connect: Connect, stage: Stage
) -> None:
    server = serve()
    client = connect(server)
    job = client.submit("single-try", stage.task("block"))
    stage.wait_for_starts()
    wait_until(lambda: any(line["operation"] == "single-try" for line in server.log_lines("loop_blocked")), "a warning")
    client.cancel(job)
    assert client.final(job, 15)["status"] == "cancelled"
    wait_until_dead(stage.pids[0])


def test_bb057_a_reason_is_bounded(client: Client) -> None:
    kept = queued(client)
    assert client.cancel(kept, "é" * 500).json()["cancel_reason"] == "é" * 500
    refused = queued(client)
    problem(client.cancel(refused, "é" * 501), 422, "invalid-request")
    problem(client.cancel(refused, "x" * 5000), 422, "invalid-request")
    assert client.job(refused)["status"] == "queued"
    client.cancel(refused)


@pytest.mark.parametrize("body", [b'{"reason": 1}', b'{"reasons": "x"}', b"[]", b'"x"', b'{"reason": ["x"]}'])
def test_a_cancel_body_of_another_form_is_422(client: Client, body: bytes) -> None:
    job = queued(client)
    answer = client.http.post(job["cancel_url"], content=body, headers={"Content-Type": "application/json"})
    assert problem(answer, 422, "invalid-request")["errors"]
    assert client.cancel(job).status_code == 200


@pytest.mark.parametrize("body", [b"{", b'{"reason": "\\u0000"}', b'{"reason": "a", "reason": "b"}', b"\xff"])
def test_a_cancel_body_that_is_no_json_is_400(client: Client, body: bytes) -> None:
    job = queued(client)
    answer = client.http.post(job["cancel_url"], content=body, headers={"Content-Type": "application/json"})
    problem(answer, 400, "malformed-json")
    assert client.job(job)["status"] == "queued"
    client.cancel(job)


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}])
def test_an_empty_cancel_body_needs_no_content_type(client: Client, headers: dict[str, str]) -> None:
    job = queued(client)
    answer = client.http.post(job["cancel_url"], headers=headers)
    assert answer.status_code == 200
    assert answer.json()["cancel_reason"] is None


def test_an_empty_object_or_null_is_no_reason(client: Client) -> None:
    for body in ({}, {"reason": None}):
        answer = client.http.post(queued(client)["cancel_url"], json=body)
        assert answer.status_code == 200
        assert answer.json()["cancel_reason"] is None


def test_a_cancel_body_of_another_type_is_415(client: Client) -> None:
    job = queued(client)
    answer = client.http.post(job["cancel_url"], content=b"reason=x", headers={"Content-Type": "text/plain"})
    problem(answer, 415, "unsupported-media-type")
    client.cancel(job)


def test_work_that_returns_after_a_cancel_was_done(serve: Serve, connect: Connect, stage: Stage) -> None:
    patient = QUIET | {"cancel_grace_s": "30", "heartbeat_s": "2"}
    client = connect(serve(settings=patient))
    job = client.submit("tasks", stage.task("cleanup", value="done"))
    client.running(job)
    assert client.cancel(job).status_code == 202
    done = client.final(job)
    assert (done["status"], done["result"]["value"]) == ("succeeded", "done")
    assert done["cancel_requested"] is True
    assert datetime.fromisoformat(done["finished_at"]) <= datetime.now(UTC) + timedelta(seconds=1)


def test_bb114_a_reason_with_markup_is_data(client: Client) -> None:
    reason = "<img src=x onerror=alert(1)>"
    answer = client.cancel(queued(client), reason)
    assert answer.json()["cancel_reason"] == reason
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
