"""Resources: the result, and erasing a job."""

import pytest

from harness.http import Client, problem
from harness.stage import Stage


def test_a_json_result_is_served_as_it_stands_in_the_job(client: Client) -> None:
    job = client.final(client.submit("tasks", {"plan": ["unicode"]}))
    answer = client.get(job["result_url"])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == job["result_type"]
    assert answer.json() == job["result"] == {"größe": "smörgåsbord ☃", "deep": [1, 2.5, None, True]}
    assert len(answer.content) == job["result_bytes"]


def test_a_file_is_served_with_its_own_content_type(client: Client) -> None:
    job = client.final(client.submit("files", {}))
    answer = client.get(job["result_url"])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == job["result_type"] == "application/pdf"
    assert answer.content == b"%PDF-" + bytes(range(256)) * 400
    assert job["result_bytes"] == len(answer.content)
    assert "result" not in job, "only JSON stands inline"


def test_a_file_can_come_from_an_operation_that_also_returns_json(client: Client) -> None:
    job = client.final(client.submit("either", {"plan": ["file"]}))
    answer = client.get(job["result_url"])
    assert answer.content == "naïve,résumé\n".encode()
    assert answer.headers["content-type"].replace(" ", "") == "text/csv;charset=utf-8"
    assert 'filename="report.csv"' in answer.headers["content-disposition"]


def test_a_json_result_beyond_the_inline_limit_stands_apart(client: Client) -> None:
    at_limit = client.final(client.submit("tasks", {"plan": [f"text:{64 * 1024 - 2}"]}))
    beyond = client.final(client.submit("tasks", {"plan": [f"text:{64 * 1024 - 1}"]}))
    assert at_limit["result_bytes"] == 64 * 1024
    assert len(at_limit["result"]) == 64 * 1024 - 2
    assert beyond["result_bytes"] == 64 * 1024 + 1
    assert "result" not in beyond
    assert client.get(beyond["result_url"]).json() == "x" * (64 * 1024 - 1)


def test_a_result_of_null_is_a_result(client: Client) -> None:
    job = client.final(client.submit("anything", {"some": "thing"}))
    assert job["result"] == {"some": "thing"}
    answer = client.http.post("/v1/anything", content=b"null", headers={"Content-Type": "application/json"})
    nothing = client.final(answer.json())
    assert "result" in nothing
    assert nothing["result"] is None
    assert client.get(nothing["result_url"]).content == b"null"


def test_no_result_has_three_problem_codes(client: Client, stage: Stage) -> None:
    running = client.submit("tasks", stage.task("wait"))
    client.running(running)
    answer = client.get(running["result_url"])
    problem(answer, 409, "job-not-finished")
    assert int(answer.headers["retry-after"]) >= 1
    failed = client.final(client.submit("tasks", {"plan": ["fail:invalid_input"]}))
    problem(client.get(failed["result_url"]), 409, "job-failed")
    cancelled = client.submit("tasks", {}, Job_Start_After="3600")
    problem(client.get(cancelled["result_url"]), 409, "job-not-finished")
    client.cancel(cancelled)
    problem(client.get(cancelled["result_url"]), 409, "job-cancelled")


def test_bb045_what_fails_is_never_a_success(client: Client) -> None:
    for plan in ("raise", "object", "surrogate"):
        job = client.final(client.submit("single-try", {"plan": [plan]}))
        assert job["status"] == "failed", plan
        assert job["error"]["title"]
        problem(client.get(job["result_url"]), 409, "job-failed")


def test_the_result_of_an_unknown_job_is_404(client: Client) -> None:
    problem(client.get("/v1/tasks/job_01kaaaaaaaaaaaaaaaaaaaaaaa/result"), 404, "not-found")


def test_a_result_that_rules_out_its_type_is_406(client: Client) -> None:
    job = client.final(client.submit("files", {}))
    assert client.get(job["result_url"], Accept="application/pdf").status_code == 200
    assert client.get(job["result_url"], Accept="*/*").status_code == 200
    assert client.get(job["result_url"], Accept="image/png").status_code in (200, 406)


def test_bb058_erasing_work_that_is_queued_or_running_is_refused(client: Client, stage: Stage) -> None:
    queued = client.submit("tasks", stage.task("return"), Job_Start_After="3600")
    running = client.submit("tasks", stage.task("wait"))
    client.running(running)
    for job in (queued, running):
        problem(client.erase(job), 409, "job-not-finished")
    assert client.job(queued)["status"] == "queued"
    stage.go()
    assert client.final(running)["status"] == "succeeded"
    client.cancel(queued)


@pytest.mark.parametrize("plan", ["return", "fail:invalid_input", "cancel"])
def test_bb059_erasing_a_finished_job_leaves_a_tombstone(client: Client, plan: str) -> None:
    if plan == "cancel":
        job = client.submit("tasks", {}, Job_Start_After="3600")
        client.cancel(job)
    else:
        job = client.submit("tasks", {"plan": [plan], "value": "personal data"})
    client.final(job)
    erased = client.erase(job)
    assert (erased.status_code, erased.content) == (204, b"")
    for path in (job["status_url"], job["result_url"], job["status_url"] + "/attempts"):
        problem(client.get(path), 410, "job-expired")
    problem(client.cancel(job), 410, "job-expired")
    assert client.erase(job).status_code in (204, 410), "erasing again is safe"
    listed = client.get("/v1/tasks").json()["jobs"]
    assert job["id"] not in [other["id"] for other in listed]
    assert b"personal data" not in client.get(job["status_url"]).content


def test_erasing_an_unknown_job_is_404(client: Client) -> None:
    problem(client.http.delete("/v1/tasks/job_01kaaaaaaaaaaaaaaaaaaaaaaa"), 404, "not-found")


def test_a_stream_of_an_erased_job_is_410(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    client.erase(job)
    problem(client.get(job["status_url"], Accept="text/event-stream"), 410, "job-expired")
