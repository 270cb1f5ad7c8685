"""States: how a job goes from one to the next, and that the final ones are final."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.stage import Stage
from harness.steps import PRIVATE_WORDS

from .conftest import Connect, Serve

HANDLER_CATEGORIES = ["invalid_input", "handler_error", "dependency_unavailable", "limit_exceeded"]
KINDS = ["tasks", "thread-tasks", "process-tasks"]


def age_s(job: JsonObject) -> float:
    """Seconds since the job was made."""
    return (datetime.now(UTC) - datetime.fromisoformat(job["created_at"])).total_seconds()


@pytest.mark.parametrize("kind", KINDS)
def test_queued_running_succeeded(client: Client, stage: Stage, kind: str) -> None:
    job = client.submit(kind, stage.task("wait", value=kind))
    assert job["status"] == "queued"
    running = client.running(job)
    assert (running["attempt"], running["finished_at"]) == (1, None)
    assert running["started_at"] is not None
    stage.go()
    assert client.final(job)["result"]["value"] == kind
    assert stage.ends == ["returned"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_is_tried_again_until_attempts_are_used_up(client: Client, stage: Stage, kind: str) -> None:
    job = client.final(client.submit(kind, stage.task("raise")))
    assert (job["status"], job["attempt"], stage.starts) == ("failed", 3, [1, 2, 3])
    assert job["error"]["category"] == "handler_error"
    assert [attempt["outcome"] for attempt in client.attempts(job)] == ["failed"] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_bb025_a_retry_keeps_the_job_and_its_url(client: Client, stage: Stage, kind: str) -> None:
    job = client.submit(kind, stage.task("raise", "retryable:dependency_unavailable", "return"))
    done = client.final(job)
    assert (done["status"], done["attempt"], done["id"]) == ("succeeded", 3, job["id"])
    assert done["status_url"] == job["status_url"]
    assert done["result"]["attempt"] == 3
    assert done["error"] is None


def test_a_job_that_waits_for_its_next_attempt_is_queued(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("later:3600"))
    waiting = client.until(job, lambda now: now["attempt"] == 1 and now["status"] == "queued", "the retry to be set")
    assert waiting["available_at"] > waiting["started_at"]
    assert waiting["done"] is False
    assert client.cancel(job).status_code == 200


def test_retry_later_counts_as_an_attempt(client: Client, stage: Stage) -> None:
    job = client.final(client.submit("tasks", stage.task("later:0.05")))
    assert (job["status"], stage.starts) == ("failed", [1, 2, 3])


@pytest.mark.parametrize("category", HANDLER_CATEGORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_error_fails_at_once_with_its_own_words(client: Client, kind: str, category: str) -> None:
    job = client.final(client.submit(kind, {"plan": [f"fail:{category}:my-code"]}))
    assert (job["status"], job["attempt"]) == ("failed", 1)
    title = job["error"].pop("title")
    assert title
    assert job["error"] == {"category": category, "code": "my-code", "detail": "The reason for clients."}


def test_a_category_that_handlers_may_not_use_is_a_handler_error(client: Client) -> None:
    job = client.final(client.submit("tasks", {"plan": ["fail:worker_lost"]}))
    assert job["error"]["category"] == "handler_error"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_exceptions_stay_with_the_operator(client: Client, kind: str) -> None:
    job = client.final(client.submit(kind, {"plan": ["raise"]}))
    shown = [client.get(job["status_url"] + end).text for end in ("", "/attempts", "/result")]
    for text in shown:
        assert PRIVATE_WORDS not in text
        assert "Traceback" not in text
        assert "RuntimeError" not in text


@pytest.mark.parametrize("plan", ["dirty", "dirty-job-error"])
@pytest.mark.parametrize("kind", KINDS)
def test_bb091_dirty_error_texts_are_recorded_clean_and_bounded(client: Client, kind: str, plan: str) -> None:
    job = client.final(client.submit(kind, {"plan": [plan]}))
    assert job["status"] == "failed"
    error = job["error"]
    assert len(error["detail"]) <= 1000
    assert len(error["code"] or "") <= 64
    for unwanted in ("\x00", "\x1b", "\ud800"):
        assert unwanted not in error["detail"] + (error["code"] or "")


@pytest.mark.parametrize("plan", ["object", "surrogate", "nan"])
@pytest.mark.parametrize("kind", KINDS)
def test_bb045_what_cannot_be_stored_is_a_failure(client: Client, kind: str, plan: str) -> None:
    job = client.final(client.submit(kind, {"plan": [plan]}))
    assert (job["status"], job["attempt"]) == ("failed", 1)
    assert job["error"]["category"] == "result_not_storable"


def test_a_result_that_is_not_of_the_declared_type_cannot_be_stored(client: Client) -> None:
    job = client.final(client.submit("typed", {}))
    assert job["error"]["category"] == "result_not_storable"


def test_a_result_beyond_its_limit_is_too_large(client: Client) -> None:
    assert client.final(client.submit("small", {"plan": ["text:998"]}))["status"] == "succeeded"
    job = client.final(client.submit("small", {"plan": ["text:999"]}))
    assert (job["status"], job["error"]["category"]) == ("failed", "result_too_large")


def test_an_attempt_that_takes_too_long_is_stopped_and_tried_again(client: Client, stage: Stage) -> None:
    job = client.final(client.submit("hasty", stage.task("wait")))
    assert (job["status"], job["error"]["category"]) == ("failed", "timeout")
    assert stage.starts == [1, 2]


def test_a_running_job_is_stopped_at_its_deadline(client: Client, stage: Stage) -> None:
    job = client.final(client.submit("tasks", stage.task("wait"), Job_Deadline="1"))
    assert (job["status"], job["error"]["category"]) == ("failed", "deadline_exceeded")
    assert stage.starts == [1]
    assert stage.ends == ["stopped True"]


def test_a_deadline_that_passes_before_the_start_means_it_never_starts(client: Client, stage: Stage) -> None:
    blocker = client.submit("one-by-one", stage.task("wait"))
    client.running(blocker)
    late = client.submit("one-by-one", stage.task("return"), Job_Deadline="0.5")
    done = client.final(late)
    assert (done["status"], done["error"]["category"]) == ("failed", "deadline_exceeded")
    assert (done["attempt"], done["started_at"]) == (0, None)
    assert client.attempts(late) == []
    stage.go()
    client.final(blocker)
    assert len(stage.starts) == 1


def test_bb061_a_queue_limit_that_passes_means_it_never_starts(client: Client, stage: Stage) -> None:
    blocker = client.submit("impatient", stage.task("wait"))
    client.running(blocker)
    late = client.submit("impatient", stage.task("return"))
    done = client.final(late)
    assert (done["status"], done["error"]["category"]) == ("failed", "deadline_exceeded")
    assert done["attempt"] == 0
    stage.go()
    assert client.final(blocker)["status"] == "succeeded"
    assert len(stage.starts) == 1


def test_bb061_work_that_is_late_when_workers_come_never_starts(serve: Serve, connect: Connect, stage: Stage) -> None:
    api = serve("--roles", "api")
    client = connect(api)
    late = [
        client.submit("impatient", stage.task("return")),
        client.submit("tasks", stage.task("return"), Job_Deadline="0.5"),
    ]
    good = client.submit("tasks", stage.task("return"))
    wait_until(lambda: age_s(late[0]) > 1.2, "the limits to pass")
    serve("--roles", "worker,upkeep")
    for job in late:
        assert client.final(job)["error"]["category"] == "deadline_exceeded"
    assert client.final(good)["status"] == "succeeded"
    assert stage.starts == [1]


def test_final_is_final(client: Client, stage: Stage) -> None:
    cancelled = client.submit("tasks", {}, Job_Start_After="3600")
    client.cancel(cancelled)
    jobs = [client.submit("tasks", {}), client.submit("tasks", {"plan": ["fail:invalid_input"]}), cancelled]
    done = [client.final(job) for job in jobs]
    for job in done:
        client.cancel(job, "too late")
        client.erase(client.final(client.submit("tasks", {})))
        assert client.job(job) == job


@pytest.mark.parametrize("kind", KINDS)
def test_an_effect_is_recorded_once_for_all_attempts(client: Client, stage: Stage, kind: str) -> None:
    job = client.final(client.submit(kind, stage.task("effect-raise", "effect")))
    assert (job["status"], job["attempt"]) == ("succeeded", 2)
    assert job["result"]["done_by"] == 1
    assert stage.lines("effects") == ["1"]


def test_concurrency_of_an_operation_is_kept(client: Client, stage: Stage) -> None:
    jobs = [client.submit("one-by-one", stage.task("wait")) for _ in range(5)]
    client.running(jobs[0])
    other = client.final(client.submit("tasks", {}))
    assert other["status"] == "succeeded", "others go on"
    assert len(stage.starts) == 1
    stage.go()
    done = [client.final(job) for job in jobs]
    spans = sorted((job["started_at"], job["finished_at"]) for job in done)
    assert all(first[1] <= second[0] for first, second in pairwise(spans)), spans
