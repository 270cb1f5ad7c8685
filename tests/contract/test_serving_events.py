"""Completion and Promises: events come from the outbox, at least once, in order, one end for each job."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.server import FRAGILE
from harness.stage import Stage

from .conftest import Connect, Serve

FINAL = {"coatcheck.job.succeeded", "coatcheck.job.failed", "coatcheck.job.cancelled"}
NAME = re.compile(r"[a-z0-9]{1,20}")


@pytest.fixture
def events_file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def told(file: Path) -> list[dict[str, Any]]:
    """The events of the file; a line that is still being written does not count."""
    text = file.read_text("utf-8") if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def wait_for_ends(file: Path, jobs: list[JsonObject]) -> None:
    ids = {job["id"] for job in jobs}

    def all_told() -> bool:
        return ids <= {event["subject"] for event in told(file) if event["type"] in FINAL}

    wait_until(all_told, "an end of each job to be told", 30)


def of_job(file: Path, job: JsonObject) -> list[dict[str, Any]]:
    """The events of one job in the order of the file, each once."""
    once = {event["id"]: event for event in told(file) if event["subject"] == job["id"]}
    return list(once.values())


def some_of_each(client: Client) -> list[JsonObject]:
    plans = (["return"], ["raise", "return"], ["fail:invalid_input"], ["raise"])
    jobs = [client.submit("tasks", {"plan": plan}) for plan in plans]
    cancelled = client.submit("tasks", {}, Job_Start_After="3600")
    client.cancel(cancelled)
    return [client.final(job) for job in [*jobs, cancelled]]


def test_events_are_cloudevents(serve: Serve, connect: Connect, events_file: Path) -> None:
    client = connect(serve("--events", f"file:{events_file}"))
    jobs = some_of_each(client)
    wait_for_ends(events_file, jobs)
    for event in told(events_file):
        assert event["specversion"] == "1.0"
        assert all(isinstance(event[name], str) and event[name] for name in ("id", "source", "type"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", event["time"])
        assert all(NAME.fullmatch(name) for name in event), list(event)
        assert event["subject"] in {job["id"] for job in jobs}
        assert event["data"]["id"] == event["subject"]
    assert len({(event["source"], event["id"]) for event in told(events_file)}) == len(told(events_file))


def test_one_end_for_each_job_and_in_order(serve: Serve, connect: Connect, events_file: Path) -> None:
    client = connect(serve("--events", f"file:{events_file}"))
    jobs = some_of_each(client)
    wait_for_ends(events_file, jobs)
    for job in jobs:
        events = of_job(events_file, job)
        versions = [event["data"]["version"] for event in events]
        assert versions == sorted(set(versions))
        assert [event["type"] in FINAL for event in events].count(True) == 1
        assert events[0]["type"] == "coatcheck.job.accepted"
        assert events[-1]["type"] == f"coatcheck.job.{job['status']}"
        assert events[-1]["data"]["version"] == job["version"]
        assert [event["type"] for event in events].count("coatcheck.job.started") == job["attempt"]


def test_events_carry_no_payload_or_secret(serve: Serve, connect: Connect, events_file: Path) -> None:
    client = connect(serve("--events", f"file:{events_file}"))
    job = client.final(client.submit("tasks", {"value": "P4YL0AD"}, X_Correlation_ID="corr-7"))
    wait_for_ends(events_file, [job])
    assert "P4YL0AD" not in events_file.read_text()
    assert "corr-7" in events_file.read_text()


def test_the_relay_may_come_later(serve: Serve, connect: Connect, events_file: Path) -> None:
    events = ("--events", f"file:{events_file}")
    client = connect(serve("--roles", "api,worker,upkeep", *events))
    jobs = some_of_each(client)
    assert told(events_file) == []
    serve("--roles", "relay", *events)
    wait_for_ends(events_file, jobs)
    assert len(of_job(events_file, jobs[0])) == 3


@pytest.mark.parametrize("place", ["outbox-written:4", "outbox-sent-before-mark:1", "complete-after-commit:2"])
def test_bb104_no_event_is_lost_by_a_crash(serve: Serve, connect: Connect, events_file: Path, place: str) -> None:
    events = ("--events", f"file:{events_file}")
    doomed = serve(*events, settings=FRAGILE | {"crash_at": place})
    client = connect(doomed)
    made: list[JsonObject] = []
    while doomed.is_running:
        try:
            made.append(client.submit("anything", len(made), Idempotency_Key=f"{place}-{len(made)}"))
        except httpx.TransportError:
            assert doomed.ended() == -signal.SIGKILL
        assert len(made) < 2000, "it never got there"
    doomed.kill()
    client = connect(serve(*events))
    jobs = [client.final(job) for job in made]
    wait_for_ends(events_file, jobs)
    for job in jobs:
        kinds = [event["type"] for event in of_job(events_file, job)]
        assert [kind in FINAL for kind in kinds].count(True) == 1
        assert kinds[0] == "coatcheck.job.accepted"


def test_a_retry_is_told(serve: Serve, connect: Connect, stage: Stage, events_file: Path) -> None:
    client = connect(serve("--events", f"file:{events_file}"))
    job = client.final(client.submit("tasks", stage.task("raise", "return")))
    wait_for_ends(events_file, [job])
    kinds = [event["type"].rpartition(".")[2] for event in of_job(events_file, job)]
    assert kinds == ["accepted", "started", "requeued", "started", "succeeded"]
