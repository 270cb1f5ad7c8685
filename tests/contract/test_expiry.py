"""Resources and States: what is kept how long, and what is left when it is gone."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject, problem
from harness.stage import Stage

ENDINGS = {
    "succeeded": "return",
    "failed": "fail:invalid_input",
    "exhausted": "raise",
    "cancelled": "return",
    "overdue": "return",
}


def ended(client: Client, operation: str, ending: str, **headers: str) -> JsonObject:
    """A job of the operation that ended in this way."""
    more = {"cancelled": {"Job_Start_After": "3600"}, "overdue": {"Job_Start_After": "0.2", "Job_Deadline": "0.201"}}
    job = client.submit(operation, {"plan": [ENDINGS[ending]]}, **more.get(ending, {}), **headers)
    if ending == "cancelled":
        client.cancel(job)
    return client.final(job)


def wait_for_status(client: Client, path: str, status: int) -> None:
    wait_until(lambda: client.get(path).status_code == status, f"{path} to be {status}", 15)


@pytest.mark.parametrize("ending", ["succeeded", "failed", "exhausted", "cancelled"])
def test_bb060_bb062_every_final_state_expires_after_its_time(client: Client, ending: str) -> None:
    job = ended(client, "brief", ending)
    lifetime = datetime.fromisoformat(job["expires_at"]) - datetime.fromisoformat(job["finished_at"])
    assert lifetime == timedelta(seconds=1)
    wait_for_status(client, job["status_url"], 410)
    assert datetime.now(UTC) >= datetime.fromisoformat(job["expires_at"])
    for path in (job["status_url"], job["result_url"], job["status_url"] + "/attempts"):
        problem(client.get(path), 410, "job-expired")
    problem(client.cancel(job), 410, "job-expired")


def test_bb060_jobs_that_never_started_expire_too(client: Client) -> None:
    job = ended(client, "brief", "overdue")
    assert job["status"] in ("failed", "succeeded")
    wait_for_status(client, job["status_url"], 410)


def test_an_expired_job_is_in_no_list(client: Client) -> None:
    job = ended(client, "brief", "succeeded")
    wait_for_status(client, job["status_url"], 410)
    for path in ("/v1/brief?limit=200", "/v1/jobs?limit=200"):
        assert job["id"] not in [other["id"] for other in client.get(path).json()["jobs"]]


def test_a_result_may_expire_before_its_job(client: Client) -> None:
    job = ended(client, "brief-result", "succeeded")
    assert job["result_expires_at"] < job["expires_at"]
    wait_for_status(client, job["result_url"], 410)
    problem(client.get(job["result_url"]), 410, "result-expired")
    kept = client.job(job)
    assert (kept["status"], kept["id"]) == ("succeeded", job["id"])
    assert kept.get("result") is None, "an expired result does not stand inline either"


def test_an_etag_does_not_outlive_the_inline_result(client: Client) -> None:
    job = ended(client, "brief-result", "succeeded")
    first = client.get(job["status_url"])
    wait_for_status(client, job["result_url"], 410)
    later = client.get(job["status_url"])
    assert (later.headers["etag"] == first.headers["etag"]) is (later.json() == first.json())


def test_a_tombstone_ends_after_its_own_time(client: Client) -> None:
    job = ended(client, "brief-tombstone", "succeeded")
    wait_for_status(client, job["status_url"], 410)
    wait_for_status(client, job["status_url"], 404)
    problem(client.get(job["status_url"]), 404, "not-found")


def test_tombstones_live_at_least_as_long_as_the_key(client: Client) -> None:
    key = uuid4().hex
    job = ended(client, "brief", "succeeded", Idempotency_Key=key)
    wait_for_status(client, job["status_url"], 410)
    body = {"plan": ["return"]}
    answer = client.post("brief", body, Idempotency_Key=key)
    assert job["status_url"] in str(problem(answer, 409, "job-expired"))
    problem(client.get(job["status_url"]), 410, "job-expired")


def test_sunset_is_when_the_job_is_gone(client: Client) -> None:
    job = ended(client, "brief-result", "succeeded")
    answer = client.get(job["status_url"])
    sunset = datetime.strptime(answer.headers["sunset"], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    assert abs(sunset - datetime.fromisoformat(job["expires_at"])) <= timedelta(seconds=1)


def test_work_that_is_queued_or_running_never_expires(client: Client, stage: Stage) -> None:
    running = client.submit("brief", stage.task("wait"))
    queued = client.submit("brief", {}, Job_Start_After="3600")
    client.running(running)
    gone = ended(client, "brief", "succeeded")
    wait_for_status(client, gone["status_url"], 410)
    assert client.job(running)["status"] == "running"
    assert client.job(running)["expires_at"] is None
    assert client.job(queued)["status"] == "queued"
    stage.go()
    client.final(running)
    client.cancel(queued)


def test_a_stream_of_an_expired_job_is_410(client: Client) -> None:
    job = ended(client, "brief", "failed")
    wait_for_status(client, job["status_url"], 410)
    problem(client.get(job["status_url"], Accept="text/event-stream"), 410, "job-expired")
    problem(client.get(job["status_url"], Prefer="wait=5"), 410, "job-expired")


def test_pages_go_on_when_jobs_between_them_expire(client: Client) -> None:
    jobs = [ended(client, "brief", "succeeded") for _ in range(4)]
    first = client.get("/v1/brief?limit=2").json()
    for job in jobs:
        wait_for_status(client, job["status_url"], 410)
    if first["next_cursor"] is not None:
        rest = client.http.get("/v1/brief", params={"limit": "2", "cursor": first["next_cursor"]})
        assert rest.status_code == 200
        assert not {job["id"] for job in rest.json()["jobs"]} & {job["id"] for job in jobs}
