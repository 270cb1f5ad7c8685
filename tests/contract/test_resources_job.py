"""Resources: the job and its representation, where it is found and where not."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from harness.http import Client, as_object, problem
from harness.stage import Stage

FIELDS = {
    "id",
    "operation",
    "status",
    "done",
    "version",
    "attempt",
    "max_attempts",
    "progress",
    "created_at",
    "started_at",
    "finished_at",
    "updated_at",
    "available_at",
    "deadline_at",
    "expires_at",
    "result_expires_at",
    "cancel_requested",
    "cancel_reason",
    "error",
    "correlation_id",
    "redrive_of",
    "redriven_as",
    "status_url",
    "result_url",
    "cancel_url",
}
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TIMES = sorted(name for name in FIELDS if name.endswith("_at"))


def test_accepted_work_is_a_job_at_its_location(client: Client) -> None:
    answer = client.post("/shop/reports", {"branches": [{"name": "leeds"}]})
    assert answer.status_code == 202
    job = as_object(answer)
    assert answer.headers["location"] == job["status_url"] == f"/shop/reports/{job['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["x-correlation-id"] == job["correlation_id"]
    assert client.final(job)["status"] == "succeeded"


def test_a_path_left_out_is_v1_and_the_name(client: Client) -> None:
    assert client.submit("/v1/tasks", {})["status_url"].startswith("/v1/tasks/")


def test_the_representation_has_exactly_the_fields_of_the_contract(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    assert set(job) == FIELDS
    assert set(client.running(job)) == FIELDS
    stage.go()
    assert set(client.final(job)) == FIELDS | {"result_type", "result_bytes", "result"}


def test_a_queued_job_says_so(client: Client) -> None:
    job = client.submit("tasks", {}, Job_Start_After="3600")
    assert (job["operation"], job["status"], job["done"]) == ("tasks", "queued", False)
    assert (job["attempt"], job["max_attempts"]) == (0, 3)
    empty = ("progress", "started_at", "finished_at", "deadline_at", "cancel_reason", "error", "redrive_of")
    assert [job[name] for name in empty] == [None] * len(empty)
    assert job["redriven_as"] is None
    assert job["cancel_requested"] is False
    assert isinstance(job["version"], int)
    assert client.job(job) == job
    client.cancel(job)


def test_a_succeeded_job_carries_its_result(client: Client) -> None:
    job = client.final(client.submit("tasks", {"value": [1, "zwei"]}))
    assert (job["status"], job["done"], job["attempt"], job["error"]) == ("succeeded", True, 1, None)
    assert job["result"] == {"value": [1, "zwei"], "attempt": 1, "job": job["id"]}
    assert job["result_type"].startswith("application/json")
    assert job["result_bytes"] == int(client.get(job["result_url"]).headers["content-length"])


def test_bb029_times_are_rfc3339_utc_with_milliseconds_and_right(client: Client) -> None:
    job = client.final(client.submit("tasks", {}, Job_Deadline="600"))
    given = {name: job[name] for name in TIMES}
    assert all(INSTANT.fullmatch(instant) for instant in given.values()), given
    moments = {name: datetime.fromisoformat(instant) for name, instant in given.items()}
    now = datetime.now(UTC)
    for name in ("created_at", "started_at", "finished_at", "updated_at", "available_at"):
        assert abs(moments[name] - now) < timedelta(seconds=20), name
    assert moments["created_at"] <= moments["started_at"] <= moments["finished_at"]
    assert abs(moments["deadline_at"] - moments["created_at"] - timedelta(seconds=600)) < timedelta(seconds=2)
    assert abs(moments["expires_at"] - moments["finished_at"] - timedelta(days=7)) < timedelta(seconds=2)
    assert abs(moments["result_expires_at"] - moments["finished_at"] - timedelta(days=7)) < timedelta(seconds=2)


def test_json_is_utf8_and_not_escaped(client: Client) -> None:
    job = client.final(client.submit("tasks", {"value": "smörgås ☃ </script>"}))
    answer = client.get(job["status_url"])
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    assert "smörgås ☃".encode() in answer.content


def test_version_rises_with_every_stored_change(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    versions = [job["version"], client.running(job)["version"]]
    stage.tell_progress(1, 4, "counting")
    versions.append(client.until(job, lambda now: now["progress"], "progress")["version"])
    stage.go()
    versions.append(client.final(job)["version"])
    assert all(earlier < later for earlier, later in pairwise(versions)), versions


def test_progress_is_a_fraction_and_a_message(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    stage.tell_progress(1, 4, "counting books")
    shown = client.until(job, lambda now: now["progress"], "progress")
    assert shown["progress"] == {"fraction": 0.25, "message": "counting books"}


def test_stored_progress_is_gathered_to_four_updates_a_second(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    before = client.running(job)["version"]
    for done in range(200):
        stage.tell_progress(done, 200, "step")
    stage.tell_progress(200, 200, "last")
    shown = client.until(job, lambda now: (now["progress"] or {}).get("message") == "last", "the last progress")
    assert shown["version"] - before <= 12, "200 reports within moments are a few stored changes"


def test_attempt_numbers_the_starts(client: Client, stage: Stage) -> None:
    job = client.final(client.submit("tasks", stage.task("raise", "raise", "return")))
    assert (job["attempt"], job["max_attempts"]) == (3, 3)
    assert stage.starts == [1, 2, 3]


def test_ids_are_unguessable_and_sort_by_creation(client: Client) -> None:
    jobs = [client.submit("tasks", {"value": "same"}) for _ in range(30)]
    ids = [job["id"] for job in jobs]
    assert len(set(ids)) == 30
    assert all(re.fullmatch(r"job_[0-9a-z]{20,}", job_id) for job_id in ids), ids
    by_time = sorted(jobs, key=lambda job: (job["created_at"], job["id"]))
    assert [job["id"] for job in by_time] == sorted(ids)
    tails = {job_id[-12:] for job_id in ids}
    assert len(tails) == 30, "the end of an id is random"


def test_an_unknown_job_is_404(client: Client) -> None:
    problem(client.get("/v1/tasks/job_01kaaaaaaaaaaaaaaaaaaaaaaa"), 404, "not-found")


@pytest.mark.parametrize(
    "job_id", ["x", "job_", "..", "%2e%2e", "*", "%", "%25", "job_%00", "a" * 5000, "%F0%9F%98%80", "job_'; --"]
)
def test_bb111_nonsense_for_an_id_is_404(client: Client, job_id: str) -> None:
    problem(client.get(f"/v1/tasks/{job_id}?"), 404, "not-found")


def test_a_job_is_not_found_under_another_operations_path(client: Client) -> None:
    job = client.submit("tasks", {})
    path = f"/v1/thread-tasks/{job['id']}"
    for answer in (client.get(path), client.get(path + "/result"), client.get(path + "/attempts")):
        problem(answer, 404, "not-found")
    problem(client.http.post(path + "/cancel"), 404, "not-found")
    problem(client.http.delete(path), 404, "not-found")
    assert client.final(job)["status"] == "succeeded"


def test_bb041_a_job_can_be_read_at_once_over_another_connection(client: Client, server_urls: list[str]) -> None:
    other = Client(server_urls[0])
    try:
        for _ in range(200):
            job = client.submit("tasks", {}, Job_Start_After="3600")
            assert other.get(job["status_url"]).status_code == 200
            assert client.cancel(job).status_code == 200
    finally:
        other.close()


def test_bb044_a_job_is_200_in_every_final_state(client: Client) -> None:
    failed = client.submit("tasks", {"plan": ["fail:invalid_input"]})
    cancelled = client.submit("tasks", {}, Job_Start_After="3600")
    client.cancel(cancelled)
    succeeded = client.submit("tasks", {})
    assert client.final(failed)["status"] == "failed"
    assert client.final(cancelled)["status"] == "cancelled"
    assert client.final(succeeded)["status"] == "succeeded"


def test_head_answers_like_get_without_a_body_and_never_waits(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    for path in (job["status_url"], job["status_url"] + "/attempts", "/v1/tasks", "/v1/jobs", "/livez", "/metrics"):
        head = client.http.head(path, headers={"Prefer": "wait=10"}, timeout=3)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-type"] == client.get(path).headers["content-type"], path
    head = client.http.head(job["result_url"])
    assert (head.status_code, head.content) == (409, b"")


def test_head_of_a_stream_ends_at_once(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    head = client.http.head(job["status_url"], headers={"Accept": "text/event-stream"}, timeout=3)
    assert (head.status_code, head.content) == (200, b"")


def test_attempts_are_listed_oldest_first(client: Client) -> None:
    job = client.final(client.submit("tasks", {"plan": ["raise", "fail:dependency_unavailable:down"]}))
    attempts = client.attempts(job)
    assert [set(attempt) for attempt in attempts] == [{"number", "started_at", "finished_at", "outcome", "error"}] * 2
    assert [attempt["number"] for attempt in attempts] == [1, 2]
    assert all(INSTANT.fullmatch(attempt["started_at"]) for attempt in attempts)
    assert attempts[0]["finished_at"] <= attempts[1]["started_at"]
    assert attempts[0]["error"]["category"] == "handler_error"
    assert attempts[1]["error"]["code"] == "down"


def test_attempts_of_a_job_that_never_started_are_none(client: Client) -> None:
    job = client.submit("tasks", {}, Job_Start_After="3600")
    assert client.attempts(job) == []
    client.cancel(job)


def test_a_running_attempt_has_no_end_yet(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    [attempt] = client.attempts(job)
    assert (attempt["number"], attempt["finished_at"], attempt["error"]) == (1, None, None)


def test_a_finished_job_announces_its_end(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    answer = client.get(job["status_url"])
    sunset = datetime.strptime(answer.headers["sunset"], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    assert abs(sunset - datetime.fromisoformat(job["expires_at"])) < timedelta(seconds=2)
    assert "retry-after" not in answer.headers


@pytest.fixture
def server_urls(client: Client) -> list[str]:
    return [str(client.http.base_url)]
