"""Serving: what an operator decides in one process holds in every other within a second."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until
from harness.http import Client
from harness.server import FRAGILE, server_environment
from harness.stage import Stage
from harness.store_place import store_url

from .conftest import Connect, Serve

OPERATOR_KEY = "an-operator-s-key-of-forty-characters-xx"
SETTINGS = FRAGILE | {"operator_key": OPERATOR_KEY}
IN_FORCE_S_MAX = 1.0
# What a request may take on a busy machine; it says nothing about when the decision reached the process.
REQUEST_S = 1.5
CLOCK = SystemClock()


def decide(client: Client, path: str) -> None:
    """An operator's POST, which must be taken."""
    answer = client.http.post(f"/admin{path}", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})
    assert answer.status_code == 200, answer.text


def command(folder: Path, *words: str) -> str:
    """What an operator's command on the servers' store prints."""
    line = [sys.executable, "-m", "coatcheck", *words, "--store", store_url(folder)]
    done = subprocess.run(line, cwd=folder, env=server_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_draining(answer: httpx.Response) -> bool:
    return answer.status_code == 503 and answer.json()["code"] == "draining"


def test_a_drain_reaches_every_process_within_a_second(serve: Serve, connect: Connect) -> None:
    here, there = (connect(serve("--roles", "api", settings=SETTINGS)) for _ in range(2))
    there.submit("anything", 1)
    for path, is_drained in (("drain", True), ("resume", False)):
        decide(here, f"/operations/anything/{path}")
        began_s = CLOCK.monotonic_s()

        def has_arrived(expected: bool = is_drained) -> bool:
            return is_draining(there.post("anything", 2)) is expected

        wait_until(has_arrived, "the other process to know")
        assert CLOCK.monotonic_s() - began_s < IN_FORCE_S_MAX + REQUEST_S
        there.submit("brief", {})


def test_a_paused_operation_starts_nothing_until_it_is_resumed(
    serve: Serve, connect: Connect, tmp_path: Path, stage: Stage
) -> None:
    client = connect(serve("--roles", "api,upkeep", settings=SETTINGS))
    serve("--roles", "worker")
    client.final(client.submit("anything", "warm-up"))
    command(tmp_path, "operations", "pause", "tasks")
    began_s = CLOCK.monotonic_s()
    # The promise: from now on no process starts one. Other operations go on.
    wait_until(lambda: CLOCK.monotonic_s() - began_s >= IN_FORCE_S_MAX, "a second to pass")
    held = client.submit("tasks", stage.task("return"))
    for number in range(5):
        client.final(client.submit("anything", number))
    assert client.job(held)["status"] == "queued"
    assert "tasks" in command(tmp_path, "operations", "list")
    decide(client, "/operations/tasks/resume")
    assert client.final(held)["status"] == "succeeded"


@pytest.mark.parametrize("mode", ["pause", "drain"])
def test_a_process_that_starts_later_knows_from_the_start(
    serve: Serve, connect: Connect, tmp_path: Path, stage: Stage, mode: str
) -> None:
    client = connect(serve("--roles", "api", settings=SETTINGS))
    waiting = client.submit("tasks", stage.task("return"))
    command(tmp_path, "operations", mode, "tasks")
    other = connect(serve("--roles", "api,worker", settings=SETTINGS))
    other.final(other.submit("anything", 1))
    if mode == "drain":
        assert is_draining(other.post("tasks", stage.task("return")))
        assert other.final(waiting)["status"] == "succeeded"
    else:
        assert other.job(waiting)["status"] == "queued"
