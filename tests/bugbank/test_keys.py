"""Keys: one key, one job, whichever way it came in and whatever happened to it."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from coatcheck import App, Job, Service
from coatcheck.core.problems import Refused
from coatcheck.declaration import DeclarationError
from coatcheck.setting_file import SettingsError
from coatcheck.settings import Settings
from coatcheck.store.clock import SystemClock
from contract.conftest import Connect, Serve
from harness.apps import app
from harness.http import Client
from harness.server import FRAGILE, Server
from harness.stage import Stage

from .inside import look_inside
from .scale import scaled

CLOCK = SystemClock()
CLIENTS = 40
HOUR_MS = 3_600_000


async def nothing(request: int, job: Job) -> None: ...


def test_bb_027_a_key_that_was_reserved_by_a_crash_is_free_at_once(serve: Serve, connect: Connect) -> None:
    doomed = serve("--roles", "api", settings=FRAGILE | {"crash_at": "key-reserved:1"})
    with pytest.raises(httpx.TransportError):
        connect(doomed).post("anything", 1, Idempotency_Key="k")
    assert doomed.ended() == -signal.SIGKILL
    doomed.kill()
    client = connect(serve("--roles", "api"))
    answer = client.post("anything", 1, Idempotency_Key="k")
    assert answer.status_code == 202
    assert "idempotent-replayed" not in answer.headers
    assert [job["id"] for job in client.get("/v1/anything").json()["jobs"]] == [answer.json()["id"]]


@pytest.mark.parametrize("value", [0, -1, "0s", float("nan")], ids=str)
@pytest.mark.parametrize("option", ["timeout", "queue_limit", "key_window", "deadline", "deadline_max"])
def test_bb_028_a_time_of_nothing_is_refused_and_never_without_end(option: str, value: Any) -> None:
    with pytest.raises(DeclarationError, match=option):
        App("shop").operation("reports", **{option: value})(nothing)


@pytest.mark.parametrize("name", ["lease_s", "heartbeat_s", "upkeep_interval_s", "retry_after_min_s"])
@pytest.mark.parametrize("value", [0, -1])
def test_bb_028_a_setting_of_nothing_is_refused(name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})


def test_bb_028_every_record_has_its_end(client: Client, server: Server) -> None:
    """A finished job, its result and its key each say until when they are kept."""
    keys = [uuid4().hex, uuid4().hex]
    for plan, key in zip(("return", "fail:invalid_input"), keys, strict=True):
        job = client.final(client.submit("tasks", {"plan": [plan]}, Idempotency_Key=key))
        assert job["expires_at"] > job["finished_at"]
        assert (job["result_expires_at"] is not None) is (plan == "return")
    rows = look_inside(server.store, "SELECT expires_at FROM idempotency_key WHERE key IN (?, ?)", *keys)
    assert [round((expires_at - CLOCK.now()) / HOUR_MS) for (expires_at,) in rows] == [24, 24]


def test_bb_035_a_key_under_contention_always_gets_an_answer(client: Client, stage: Stage) -> None:
    """Forty clients hand in the same key again and again while its job runs."""
    body, key = stage.task("wait"), uuid4().hex
    job = client.submit("tasks", body, Idempotency_Key=key)
    client.running(job)
    ends_s = CLOCK.monotonic_s() + scaled(2, 50)

    def hand_in(_: int) -> set[tuple[int, str]]:
        seen = set()
        with httpx.Client(base_url=client.http.base_url, timeout=30) as http:
            while CLOCK.monotonic_s() < ends_s:
                answer = http.post("/v1/tasks", json=body, headers={"Idempotency-Key": key})
                seen.add((answer.status_code, answer.json()["id"]))
        return seen

    with ThreadPoolExecutor(CLIENTS) as pool:
        seen = set().union(*pool.map(hand_in, range(CLIENTS)))
    assert seen == {(202, job["id"])}
    stage.go()
    assert client.final(job)["status"] == "succeeded"
    assert stage.starts == [1]


async def test_bb_037_both_ways_in_have_one_rule_for_a_key_whose_job_is_over(serve: Serve, connect: Connect) -> None:
    """Over HTTP and from code: the job that failed or was cancelled; of one that is gone, that it is gone."""
    server = serve()
    client = connect(server)
    body = {"plan": ["fail:invalid_input"], "folder": None, "value": None}
    cancelled = client.submit("tasks", body, Idempotency_Key="cancelled", Job_Start_After="3600")
    client.cancel(cancelled)
    failed = client.final(client.submit("tasks", body, Idempotency_Key="failed"))
    gone = client.final(client.submit("tasks", body, Idempotency_Key="gone"))
    client.erase(gone)
    settings = Settings(store=f"sqlite:///{server.store}", roles=("api",))
    service = Service(app, settings, app_ref="harness.apps:app")
    async with service.lifespan():
        for job, key in ((cancelled, "cancelled"), (failed, "failed")):
            assert client.post("tasks", body, Idempotency_Key=key).json()["id"] == job["id"]
            assert (await service.submit("tasks", body, idempotency_key=key)).id == job["id"]
        answer = client.post("tasks", body, Idempotency_Key="gone")
        with pytest.raises(Refused) as refusal:
            await service.submit("tasks", body, idempotency_key="gone")
        assert (answer.status_code, answer.json()["code"]) == (409, refusal.value.code)
