"""Time zones: TZ, and the hours that daylight saving skips or repeats, change nothing anybody can see."""

import json
import logging
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck.app import App
from coatcheck.completion.events.cloudevents import cloud_event
from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.records import ClaimRequest, Finishing
from coatcheck.testing.clock import ManualClock

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
# A minute before clocks are set in Berlin (forwards, back), in New York (both) and on Lord Howe Island.
MOMENTS = (
    "2026-03-29T00:59:00+00:00",
    "2026-10-25T00:59:00+00:00",
    "2026-03-08T06:59:00+00:00",
    "2026-11-01T05:59:00+00:00",
    "2026-04-04T14:59:00+00:00",
)
STARTS = {
    "120": 120_000,
    "2026-03-29T02:30:00+01:00": None,
    "2026-12-31T23:59:60Z": None,
}


@pytest.fixture
def zone() -> Iterator[Any]:
    """Sets the zone of this process, and back."""
    before = os.environ.get("TZ")

    def move_to(name: str) -> None:
        os.environ["TZ"] = name
        time.tzset()

    yield move_to
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_jobs_life_looks_the_same_in_every_zone(moment: str, zone: Any, tmp_path: Path) -> None:
    lives = []
    for number, name in enumerate(ZONES):
        zone(name)
        folder = tmp_path / str(number)
        folder.mkdir()
        lives.append(await _life(folder, moment, lambda: None))
    assert all(life == lives[0] for life in lives), lives
    assert lives[0]["created_at"] == f"{moment[:19]}.000Z"


async def test_a_zone_that_changes_in_the_middle_changes_nothing(zone: Any, tmp_path: Path) -> None:
    zone("UTC")
    still, moving = tmp_path / "still", tmp_path / "moving"
    still.mkdir()
    moving.mkdir()
    moves = iter(["Asia/Kathmandu", "America/New_York"] * 10)
    life = await _life(moving, MOMENTS[0], lambda: zone(next(moves)))
    zone("UTC")
    assert life == await _life(still, MOMENTS[0], lambda: None)


@pytest.mark.parametrize("name", ZONES)
def test_log_lines_are_in_utc(name: str, zone: Any) -> None:
    zone(name)
    before = datetime.now(UTC)
    record = logging.LogRecord("coatcheck", logging.INFO, __file__, 1, "hello", (), None)
    assert abs(record.created - before.timestamp()) < 60


async def _life(folder: Path, moment: str, move: Any) -> dict[str, Any]:
    """One job from acceptance to its end over an hour of the clock, as its client and its followers see it."""
    clock = ManualClock(round(datetime.fromisoformat(moment).timestamp() * 1000))
    settings = Settings(store=f"sqlite:///{folder}/jobs.db", roles=("api",), events=f"file:{folder}/events")
    runtime = Runtime(_app(), settings, "zones:app", clock)
    await runtime.start()
    transport = httpx.ASGITransport(app=runtime.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        seen: dict[str, Any] = {"starts": [await _start(client, clock, text, given) for text, given in STARTS.items()]}
        move()
        accepted = (await client.post("/v1/notes", json={"n": 1}, headers={"job-deadline": "7200"})).json()
        clock.advance(3600)
        move()
        await _finish(runtime, clock)
        answer = await client.get(accepted["status_url"])
        listed = (await client.get("/v1/jobs")).json()["jobs"]
    entries = await runtime.store.read_outbox(100)
    await runtime.stop()
    told = [json.loads(cloud_event(entry, "coatcheck/zones"))["time"] for entry in entries]
    times = {name: value for name, value in answer.json().items() if name.endswith("_at")}
    return seen | times | {"sunset": answer.headers["sunset"], "told": told, "listed": len(listed)}


def _app() -> App:
    app = App("zones")

    @app.operation("notes", retention="1d", deadline_max="30d")
    async def notes(request: dict[str, int], job: Any) -> dict[str, int]:
        return request

    return app


async def _start(client: httpx.AsyncClient, clock: ManualClock, text: str, given_ms: int | None) -> str:
    """When work starts that is to start at this moment."""
    answer = await client.post("/v1/notes", json={"n": 2}, headers={"job-start-after": text})
    assert answer.status_code == 202, answer.text
    at = str(answer.json()["available_at"])
    if given_ms is not None:
        assert datetime.fromisoformat(at).timestamp() * 1000 == clock.now() + given_ms
    return at


async def _finish(runtime: Runtime, clock: ManualClock) -> None:
    policies = runtime.app.policies.by_operation
    claims = await runtime.store.claim_ready(ClaimRequest("w", 9, {"notes": 9}, policies), clock.now())
    for claim in claims.claims:
        done = Succeeded(ResultBody("application/json", b"{}"))
        await runtime.store.finish_attempt(Finishing(claim.lease, done, policies["notes"], 0.5), clock.now())
