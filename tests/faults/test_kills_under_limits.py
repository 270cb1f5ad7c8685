"""Killed while a tenant's limits hold: no place is lost, and none is given twice."""

import contextlib
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from faults.places import ENGINES, MakePlace
from harness.http import Client
from harness.server import FRAGILE, Server
from harness.stage import Stage

QUEUED_MAX, RUNNING_MAX = 5, 2
SETTINGS = FRAGILE | {"tenant_queued_max": str(QUEUED_MAX), "tenant_running_max": str(RUNNING_MAX)}

_on_each_engine = pytest.mark.parametrize("make_place", ENGINES.values(), ids=ENGINES)


def server(folder: Path, url: str, roles: str, crash_at: str | None = None) -> Server:
    """A server under the limits, which may kill itself."""
    settings = SETTINGS | ({} if crash_at is None else {"crash_at": crash_at})
    return Server(folder, ["--store", url, "--roles", roles], settings)


@contextmanager
def serving(folder: Path, url: str, roles: str, crash_at: str | None = None) -> Iterator[Server]:
    """The same, started, for the length of a block."""
    made = server(folder, url, roles, crash_at)
    try:
        yield made.start()
    finally:
        made.kill()


def await_death(victim: Server) -> None:
    assert victim.ended() == -signal.SIGKILL, victim.log[-4000:]


def fill(client: Client) -> int:
    """Hand in work until the queue is full; returns how many of the tenant's jobs are queued then."""
    for _ in range(QUEUED_MAX + 1):
        answer = client.post("anything", 1)
        if answer.status_code == 429:
            break
        assert answer.status_code == 202, answer.text
    assert answer.json()["code"] == "too-many-queued"
    return len(client.get("/v1/jobs?status=queued").json()["jobs"])


@_on_each_engine
@pytest.mark.parametrize("crash_at", ["before-commit:3", "after-commit-before-response:2"])
def test_an_edge_that_dies_between_counting_and_answering_leaves_the_queue_exact(
    make_place: MakePlace, crash_at: str, tmp_path: Path
) -> None:
    url = make_place(tmp_path).url
    with serving(tmp_path, url, "api", crash_at) as victim, closing(Client(victim.url)) as client:
        with contextlib.suppress(httpx.TransportError):
            for _ in range(QUEUED_MAX):
                client.post("anything", 1)
        await_death(victim)
    with serving(tmp_path, url, "api") as again, closing(Client(again.url)) as client:
        assert fill(client) == QUEUED_MAX


@_on_each_engine
@pytest.mark.parametrize("crash_at", ["claim-before-commit:1", "claimed-before-start:1", "complete-after-commit:1"])
def test_a_worker_that_dies_gives_its_places_back(make_place: MakePlace, crash_at: str, tmp_path: Path) -> None:
    url, stage = make_place(tmp_path).url, Stage(tmp_path / "stage")
    with serving(tmp_path, url, "api,upkeep") as edge, closing(Client(edge.url)) as client:
        jobs = [client.submit("tasks", stage.task("return")) for _ in range(QUEUED_MAX)]
        # It may die before it can say that it has started.
        victim = server(tmp_path, url, "worker", crash_at)
        victim.launch()
        await_death(victim)
        with serving(tmp_path, url, "worker"), serving(tmp_path, url, "worker"):
            assert {client.final(job)["status"] for job in jobs} == {"succeeded"}
            slow = [client.submit("tasks", stage.task("wait", "return")) for _ in range(RUNNING_MAX + 2)]
            running = "/v1/jobs?status=running"
            wait_until(lambda: len(client.get(running).json()["jobs"]) == RUNNING_MAX, "as many to run as may")
            stage.go()
            assert {client.final(job)["status"] for job in slow} == {"succeeded"}
        assert fill(client) == QUEUED_MAX
