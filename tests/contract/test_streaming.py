"""Streaming: one event for each version, resumed where it broke off."""

from itertools import pairwise

import pytest

from harness.http import Client, JsonObject
from harness.sse import Event, read_events
from harness.stage import Stage


def without_comments(events: list[Event]) -> list[Event]:
    return [event for event in events if event.type != "comment"]


def test_a_stream_shows_the_life_of_a_job_and_ends(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    with client.stream(job) as events:
        seen = [next(event for event in events if event.type != "comment")]
        client.running(job)
        stage.tell_progress(1, 2, "half")
        seen += [next(event for event in events if event.type == "progress")]
        stage.go()
        seen += without_comments(list(events))
    assert {event.type for event in seen} <= {"status", "progress", "done"}
    assert [event.type for event in seen].count("done") == 1
    assert seen[-1].type == "done"
    ids = [event.id for event in seen]
    assert all(isinstance(event_id, int) for event_id in ids)
    assert all(earlier < later for earlier, later in pairwise(ids) if earlier and later), ids
    done = client.job(job)
    assert ids[-1] == done["version"]


def test_each_event_is_the_job_at_its_version(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    client.running(job)
    with client.stream(job) as events:
        first = next(events)
        assert (first.type, first.data["status"]) == ("status", "running")
        assert first.id == first.data["version"]
        stage.tell_progress(3, 4, "nearly there ☃")
        progress = next(event for event in events if event.type == "progress")
        assert progress.data["progress"] == {"fraction": 0.75, "message": "nearly there ☃"}
        stage.go()
        done = list(events)[-1]
    assert done.type == "done"
    shown = {name: value for name, value in client.job(job).items() if name != "result"}
    assert {name: value for name, value in done.data.items() if name != "result"} == shown


def test_the_stream_of_a_finished_job_is_its_end(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    with client.stream(job) as events:
        seen = list(events)
    assert [(event.type, event.id) for event in without_comments(seen)] == [("done", job["version"])]


def final_in(client: Client, plan: str) -> JsonObject:
    job = client.submit("tasks", {"plan": [plan]}, Job_Start_After="3600" if plan == "cancel" else "0")
    if plan == "cancel":
        client.cancel(job)
    return client.final(job)


@pytest.mark.parametrize(
    ("plan", "status"), [("return", "succeeded"), ("fail:invalid_input", "failed"), ("cancel", "cancelled")]
)
def test_a_stream_ends_with_done_in_every_final_state(client: Client, plan: str, status: str) -> None:
    with client.stream(final_in(client, plan)) as events:
        [done] = without_comments(list(events))
    assert (done.type, done.data["status"]) == ("done", status)


def test_a_stream_resumes_after_the_last_event_seen(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    client.running(job)
    with client.stream(job) as events:
        seen = next(events)
    stage.tell_progress(1, 2, "half")
    client.until(job, lambda now: now["progress"], "progress")
    with client.stream(job, Last_Event_ID=str(seen.id)) as events:
        resumed = next(event for event in events if event.type != "comment")
        assert resumed.id is not None
        assert seen.id is not None
        assert resumed.id > seen.id
        stage.go()
        assert list(events)[-1].type == "done"


def test_a_stream_that_is_up_to_date_waits_for_the_next_version(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("progress"))
    current = client.running(job)["version"]
    with client.stream(job, Last_Event_ID=str(current)) as events:
        assert next(events).type == "comment", "nothing new to tell"
        stage.go()
        assert list(events)[-1].type == "done"


def test_nothing_can_follow_the_end(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    for last in (job["version"], job["version"] + 5):
        answer = client.get(job["status_url"], Accept="text/event-stream", Last_Event_ID=str(last))
        assert (answer.status_code, answer.content) == (204, b"")
    with client.stream(job, Last_Event_ID=str(job["version"] - 1)) as events:
        assert [event.type for event in without_comments(list(events))] == ["done"]


@pytest.mark.parametrize("last", ["", "x", "-1", "1.5", "99999999999999999999999", "0"])
def test_a_last_event_id_that_is_none_starts_from_now(client: Client, stage: Stage, last: str) -> None:
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    answer: list[Event] = []
    with client.http.stream(
        "GET", job["status_url"], headers={"Accept": "text/event-stream", "Last-Event-ID": last}
    ) as response:
        assert response.status_code in (200, 400)
        if response.status_code == 200 and last != "99999999999999999999999":
            answer.append(next(read_events(response.iter_lines())))
            assert answer[0].type in ("status", "comment")


def test_a_silent_stream_sends_comments(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)
    with client.stream(job) as events:
        types = [next(events).type for _ in range(4)]
    assert types[0] == "status"
    assert types[1:] == ["comment"] * 3


def test_a_stream_is_not_cached_or_buffered(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    with client.http.stream("GET", job["status_url"], headers={"Accept": "text/event-stream"}) as answer:
        assert "no-cache" in answer.headers["cache-control"] or "no-store" in answer.headers["cache-control"]
        assert "content-length" not in answer.headers
        assert answer.headers["x-correlation-id"]


def test_accept_decides_between_json_and_the_stream(client: Client) -> None:
    job = client.final(client.submit("tasks", {}))
    for accept, kind in (
        ("text/event-stream, application/json;q=0.5", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("text/*", "text/event-stream"),
        ("*/*", "application/json"),
    ):
        answer = client.get(job["status_url"], Accept=accept)
        assert answer.headers["content-type"].partition(";")[0] == kind, accept


def test_a_client_that_leaves_costs_nobody_anything(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("wait"))
    for _ in range(20):
        with client.stream(job) as events:
            next(events)
    stage.go()
    assert client.final(job)["status"] == "succeeded"


def test_a_retry_shows_as_queued_again(client: Client, stage: Stage) -> None:
    job = client.submit("tasks", stage.task("later:0.5", "return"))
    with client.stream(job) as events:
        seen = without_comments(list(events))
    statuses = [event.data["status"] for event in seen]
    assert statuses[-1] == "succeeded"
    assert "queued" in statuses[1:] or statuses.count("queued") >= 1
    assert seen[-1].data["attempt"] == 2
