"""Serving: the roles of one store in one process or several, and how soon work is picked up."""

import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client
from harness.processes import wait_until_dead
from harness.server import FRAGILE, QUIET, Server
from harness.stage import Stage

from .conftest import Connect, Serve

PICKUP_S_MAX = 0.5


def pickup_s(client: Client, count: int = 20) -> float:
    """The median time from acceptance to start, in seconds, of jobs that come one by one."""
    client.final(client.submit("anything", "warm-up"))
    delays = []
    for number in range(count):
        job = client.final(client.submit("anything", number))
        started, created = (datetime.fromisoformat(job[name]) for name in ("started_at", "created_at"))
        delays.append((started - created).total_seconds())
    return median(delays)


def test_work_is_picked_up_at_once(client: Client, record_property: Callable[[str, object], None]) -> None:
    measured = pickup_s(client)
    record_property("pickup_p50_s", measured)
    print(f"pickup in one process: p50 {measured * 1000:.0f} ms")  # noqa: T201 - the measurement is the point
    assert measured < PICKUP_S_MAX


def test_the_roles_may_be_processes_of_their_own(
    serve: Serve, connect: Connect, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    events = ("--events", f"file:{tmp_path / 'events.jsonl'}")
    api, *_ = (serve("--roles", role, *events) for role in ("api", "worker", "relay", "upkeep"))
    client = connect(api)
    measured = pickup_s(client)
    record_property("pickup_p50_s_across_processes", measured)
    print(f"pickup across processes: p50 {measured * 1000:.0f} ms")  # noqa: T201 - the measurement is the point
    assert measured < PICKUP_S_MAX
    brief = client.final(client.submit("brief", {}))
    wait_until(lambda: client.get(brief["status_url"]).status_code == 410, "upkeep to prune", 15)
    wait_until(lambda: brief["id"] in (tmp_path / "events.jsonl").read_text(), "the relay to tell", 15)


def test_a_wait_sees_the_end_of_work_in_another_process(serve: Serve, connect: Connect) -> None:
    client = connect(serve("--roles", "api"))
    serve("--roles", "worker")
    client.final(client.submit("anything", "warm-up"))
    answer = client.post("anything", "waited for", Prefer="wait=10")
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() < 3


def test_bb052_a_cancel_reaches_a_worker_in_another_process(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve("--roles", "api"))
    serve("--roles", "worker")
    job = client.submit("tasks", stage.task("wait"))
    stage.wait_for_starts()
    assert client.cancel(job).status_code == 202
    assert client.final(job, 10)["status"] == "cancelled"
    assert stage.ends == ["stopped True"]


def test_another_worker_takes_over_from_one_that_died(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve("--roles", "api,upkeep"))
    doomed = serve("--roles", "worker")
    jobs = [client.submit("tasks", stage.task("wait", "return")) for _ in range(5)]
    stage.wait_for_starts(5)
    doomed.kill()
    wait_until_dead(stage.pids[0])
    serve("--roles", "worker")
    for job in jobs:
        done = client.final(job)
        assert (done["status"], done["attempt"]) == ("succeeded", 2)


def test_two_processes_may_do_everything(serve: Serve, connect: Connect, stage: Stage) -> None:
    clients = [connect(serve()) for _ in range(2)]
    jobs = [clients[number % 2].submit("tasks", stage.task("return")) for number in range(60)]
    for number, job in enumerate(jobs):
        done = clients[(number + 1) % 2].final(job)
        assert (done["status"], done["attempt"]) == ("succeeded", 1)
    assert len(stage.starts) == 60


def test_workers_are_runner_processes_and_concurrency_is_their_places(
    serve: Serve, connect: Connect, stage: Stage
) -> None:
    client = connect(serve("--workers", "2", "--concurrency", "2"))
    jobs = [client.submit("tasks", stage.task("wait")) for _ in range(6)]
    stage.wait_for_starts(4)
    assert len(set(stage.pids)) == 2
    waiting = [job for job in jobs if client.job(job)["status"] == "queued"]
    assert len(waiting) == 2
    stage.go()
    for job in jobs:
        assert client.final(job)["status"] == "succeeded"


def test_a_process_without_the_api_may_serve_its_health(serve: Serve, free_port: int) -> None:
    serve("--roles", "worker", "--metrics-port", str(free_port))
    with httpx.Client(base_url=f"http://127.0.0.1:{free_port}") as http:
        assert http.get("/livez").status_code == 200
        assert http.get("/readyz").status_code == 200
        assert "coatcheck_" in http.get("/metrics").text
        assert http.post("/v1/tasks", json={}).status_code == 404


def test_a_public_url_makes_links_absolute(serve: Serve, connect: Connect) -> None:
    client = connect(serve("--public-url", "https://jobs.example.org/api"))
    answer = client.http.post("/v1/tasks", json={}, headers={"X-Forwarded-Host": "evil.example"})
    job = answer.json()
    base = f"https://jobs.example.org/api/v1/tasks/{job['id']}"
    assert (job["status_url"], job["result_url"], job["cancel_url"]) == (base, f"{base}/result", f"{base}/cancel")
    assert answer.headers["location"] == base
    client.post("tasks", {})
    listed = client.get("/v1/tasks?limit=1")
    assert listed.links["next"]["url"].startswith("https://jobs.example.org/api/v1/tasks?")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], ["auth"]),  # noqa: S104 - it must be refused
        (["--roles", "api,nonsense"], ["roles"]),
        (["--lease", "3", "--heartbeat", "2"], ["heartbeat", "lease"]),
        (["--store", "mysql://x"], ["store"]),
        (["--port", "99999999"], ["port"]),
        (["--workers", "0"], ["workers"]),
        (["--tls-cert", "/no/such.pem"], ["tls_cert"]),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    refused = Server(tmp_path, arguments, settings=QUIET)
    refused.launch()
    assert refused.ended() not in (0, None)
    refused.kill()
    said = refused.log.lower().replace("-", "_")
    assert "traceback" not in said
    for word in words:
        assert word in said, refused.log


def test_loopback_is_served_without_authentication_as_one_tenant(client: Client) -> None:
    job = client.final(client.submit("facts", {}))
    assert job["result"]["tenant"] == "default"


@pytest.mark.parametrize("app_ref", ["harness.nothing:app", "harness.apps:nothing", "harness.apps", "harness.stage:GO"])
def test_an_app_that_cannot_be_found_is_a_sentence(tmp_path: Path, app_ref: str) -> None:
    refused = Server(tmp_path, settings=QUIET, app_ref=app_ref)
    refused.launch()
    assert refused.ended() != 0
    refused.kill()
    assert "Traceback" not in refused.log
    assert app_ref.partition(":")[0] in refused.log


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path, server: Server) -> None:
    refused = Server(tmp_path, ["--port", str(server.port)], settings=FRAGILE)
    refused.launch()
    assert refused.ended() != 0
    refused.kill()
    assert "Traceback" not in refused.log
    assert str(server.port) in refused.log


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
