"""Telling: events that any reader of CloudEvents understands, with times that are right."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import orjson
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.server import Server

from .inside import look_inside

PLANS = (["return"], ["raise", "return"], ["fail:invalid_input"], ["raise"], ["dirty-job-error"])


REASON = "größer als gedacht ☃"


@dataclass(frozen=True)
class Telling:
    """A service that tells events, and the file it tells them to."""

    server: Server
    client: Client
    events: Path

    def told(self, job: JsonObject) -> list[tuple[bytes, JsonObject]]:
        """The lines of a job that has ended, as they are and as JSON, once its end is among them."""
        found: list[tuple[bytes, JsonObject]] = []

        def is_told() -> bool:
            lines = self.events.read_bytes().splitlines() if self.events.exists() else []
            found[:] = [(line, event) for line in lines if (event := orjson.loads(line))["subject"] == job["id"]]
            return bool(found) and found[-1][1]["data"]["version"] == job["version"]

        wait_until(is_told, "its end to be told", 20)
        return found


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telling]:
    folder = tmp_path_factory.mktemp("telling")
    server = Server(folder, ["--events", f"file:{folder / 'events.jsonl'}"])
    try:
        client = Client(server.start().url)
        yield Telling(server, client, folder / "events.jsonl")
        client.close()
        server.stop()
    finally:
        server.kill()


def lives(client: Client) -> list[JsonObject]:
    """A job of every kind of life, with texts that are not ASCII."""
    jobs = [client.submit("tasks", {"plan": plan, "value": "☃"}) for plan in PLANS]
    jobs.append(client.submit("tasks", {}, Job_Start_After="3600"))
    client.cancel(jobs[-1], REASON)
    return [client.final(job) for job in jobs]


def test_bb_105_the_official_reader_understands_every_event(telling: Telling) -> None:
    for line, plain in itertools.chain.from_iterable(map(telling.told, lives(telling.client))):
        event = from_structured_event(HTTPMessage({"content-type": "application/cloudevents+json"}, line))
        assert event.get_specversion() == "1.0"
        assert (event.get_id(), event.get_source()) == (plain["id"], "urn:coatcheck:contract")
        assert event.get_datacontenttype() == "application/json"
        data = event.get_data()
        assert isinstance(data, dict)
        assert data["id"] == event.get_subject()
        for name, value in event.get_attributes().items():
            assert name.isascii()
            assert name.isalnum()
            assert name == name.lower()
            assert isinstance(value, str) or name == "time"


def test_bb_057_the_reason_of_a_cancel_stands_in_the_job_and_in_its_event(telling: Telling) -> None:
    job = telling.client.submit("tasks", {}, Job_Start_After="3600")
    assert telling.client.cancel(job, REASON).json()["cancel_reason"] == REASON
    cancelled = telling.client.job(job)
    assert cancelled["cancel_reason"] == REASON
    assert telling.told(cancelled)[-1][1]["data"]["cancel_reason"] == REASON


def test_bb_029_every_time_is_right_wherever_it_stands(telling: Telling) -> None:
    """In events, in headers and in the store, in the unit that its name says."""
    client = telling.client
    job = client.final(client.submit("tasks", {}, Job_Deadline="600", Idempotency_Key="k"))
    now = datetime.now(UTC)
    for _, event in telling.told(job):
        assert abs(datetime.fromisoformat(event["time"]) - now) < timedelta(seconds=20)
    sunset = parsedate_to_datetime(client.get(job["status_url"]).headers["sunset"])
    assert abs(sunset - now - timedelta(days=7)) < timedelta(seconds=20)
    waiting = client.submit("tasks", {}, Job_Start_After="40")
    assert 30 <= int(client.get(waiting["status_url"]).headers["retry-after"]) <= 50
    now_ms = now.timestamp() * 1000
    stored = "SELECT created_at, started_at, updated_at, available_at, finished_at FROM job WHERE id = ?"
    [instants] = look_inside(telling.server.store, stored, job["id"])
    assert all(abs(instant - now_ms) < 20_000 for instant in instants), instants
