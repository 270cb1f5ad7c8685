"""Promises: 202 means durable, nothing is lost, starts are bounded, recovery needs no human."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject
from harness.processes import is_alive, wait_until_dead
from harness.server import FRAGILE, Server
from harness.stage import Stage

from .conftest import Connect, Serve

INNOCENTS = 50


def test_promise_1_accepted_work_survives_sigkill_of_everything(
    serve: Serve, connect: Connect, stage: Stage, neighbour: Stage
) -> None:
    first = serve()
    client = connect(first)
    running = [client.submit("tasks", neighbour.task("wait", "return")) for _ in range(5)]
    neighbour.wait_for_starts(5)
    queued = [client.submit("tasks", stage.task("return"), Job_Start_After="1") for _ in range(20)]
    done = client.final(client.submit("tasks", {"value": "kept"}))
    first.kill()
    client = connect(serve())
    assert client.job(done) == done
    for job in queued:
        assert client.final(job)["attempt"] == 1
    for job in running:
        ended = client.final(job)
        assert (ended["status"], ended["attempt"]) == ("succeeded", 2)
        assert [attempt["outcome"] for attempt in client.attempts(job)] == ["worker_lost", "succeeded"]
    assert sorted(neighbour.starts) == [1] * 5 + [2] * 5


def test_promise_1_no_answered_job_is_lost_when_killed_under_load(serve: Serve, connect: Connect) -> None:
    server = serve()
    acknowledged: list[JsonObject] = []

    def hand_in(sender: int) -> None:
        with httpx.Client(base_url=server.url, timeout=10) as http:
            for number in range(2000):
                headers = {"Idempotency-Key": f"{sender}-{number}"}
                try:
                    answer = http.post("/v1/tasks", json={"value": number}, headers=headers)
                except httpx.TransportError:
                    return
                assert answer.status_code == 202
                acknowledged.append(answer.json())

    with ThreadPoolExecutor(4) as pool:
        senders = [pool.submit(hand_in, sender) for sender in range(4)]
        wait_until(lambda: len(acknowledged) >= 150, "some load", 30)
        server.kill()
        for sender in senders:
            sender.result()
    client = connect(serve())
    assert len(acknowledged) >= 150
    for job in acknowledged:
        ended = client.final(job)
        assert (ended["status"], ended["id"]) == ("succeeded", job["id"])


def test_bb027_a_key_whose_answer_was_lost_finds_its_job(serve: Serve, connect: Connect) -> None:
    """Killed after the commit and before the answer: the same key leads to the same job, or to its first commit."""
    for place in ("before-commit:1", "after-commit-before-response:1"):
        own = serve("--roles", "api", settings=FRAGILE | {"crash_at": place})
        with pytest.raises(httpx.TransportError):
            connect(own).post("anything", place, Idempotency_Key=place)
        assert own.ended() == -signal.SIGKILL
        own.kill()
    client = connect(serve())
    for place, is_replay in (("before-commit:1", False), ("after-commit-before-response:1", True)):
        answer = client.post("anything", place, Idempotency_Key=place)
        assert answer.status_code == 202
        assert ("idempotent-replayed" in answer.headers) is is_replay, place
        assert client.final(answer.json())["status"] == "succeeded"
    assert len(client.get("/v1/anything").json()["jobs"]) == 2


@pytest.mark.parametrize("kind", ["tasks", "thread-tasks", "process-tasks"])
@pytest.mark.parametrize("step", ["kill", "exit"])
def test_bb019_a_handler_that_kills_its_process_is_counted(
    crash_server: Client, stage: Stage, kind: str, step: str
) -> None:
    job = crash_server.final(crash_server.submit(kind, stage.task(step)))
    assert (job["status"], job["error"]["category"]) == ("failed", "worker_lost")
    assert stage.starts == [1, 2, 3]
    assert [attempt["outcome"] for attempt in crash_server.attempts(job)] == ["worker_lost"] * 3
    assert crash_server.final(crash_server.submit(kind, {}))["status"] == "succeeded", "others go on"


def test_bb020_a_worker_lost_on_the_last_attempt_is_a_failure(crash_server: Client, stage: Stage) -> None:
    job = crash_server.final(crash_server.submit("single-try", stage.task("kill")))
    assert (job["status"], job["error"]["category"], stage.starts) == ("failed", "worker_lost", [1])


@pytest.mark.parametrize("kind", ["tasks", "thread-tasks", "process-tasks"])
def test_bb011_a_job_whose_process_dies_runs_again(crash_server: Client, stage: Stage, kind: str) -> None:
    job = crash_server.submit(kind, stage.task("wait", "return"))
    stage.wait_for_starts()
    os.kill(stage.pids[0], signal.SIGKILL)
    done = crash_server.final(job)
    assert (done["status"], done["attempt"]) == ("succeeded", 2)


def test_an_effect_survives_a_crash_of_its_process(crash_server: Client, stage: Stage) -> None:
    job = crash_server.final(crash_server.submit("tasks", stage.task("effect-exit", "effect")))
    assert job["result"]["done_by"] == 1
    assert stage.lines("effects") == ["1"]


def test_a_crasher_never_costs_its_neighbours_an_attempt(crash_server: Client, stage: Stage, neighbour: Stage) -> None:
    innocents = [crash_server.submit("single-try", neighbour.task("wait")) for _ in range(INNOCENTS)]
    crasher = crash_server.submit("tasks", stage.task("wait-exit"))
    neighbour.wait_for_starts(INNOCENTS)
    stage.wait_for_starts()
    assert set(neighbour.pids) == set(stage.pids), "one runner holds them all"
    stage.go()
    wait_until_dead(stage.pids[0])
    neighbour.go()
    for job in innocents:
        done = crash_server.final(job)
        assert done["status"] == "succeeded", "its only attempt was not used up"
    failed = crash_server.final(crasher)
    assert (failed["status"], failed["error"]["category"]) == ("failed", "worker_lost")
    assert len(stage.starts) <= 4, "three crashes alone, and one in company that does not count"


def test_crashing_jobs_hold_nobody_up(crash_server: Client, stage: Stage) -> None:
    for _ in range(8):
        crasher = crash_server.submit("single-try", stage.task("kill"))
        assert crash_server.final(crasher)["error"]["category"] == "worker_lost"
        innocent = crash_server.final(crash_server.submit("tasks", {}), timeout_s=6)
        assert innocent["status"] == "succeeded"


def test_a_crash_leaves_the_api_up(crash_server: Client, stage: Stage) -> None:
    job = crash_server.submit("tasks", stage.task("exit"))
    while not crash_server.job(job)["done"]:
        assert crash_server.get("/readyz").status_code == 200


def test_runners_end_with_their_server(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve()
    client = connect(server)
    client.submit("tasks", stage.task("wait"))
    client.submit("process-tasks", stage.task("wait"))
    stage.wait_for_starts(2)
    server.signal(signal.SIGKILL)
    assert server.ended() == -signal.SIGKILL
    for pid in stage.pids:
        wait_until_dead(pid)
    server.kill()


def test_bb002_long_work_is_not_started_twice(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve(settings=FRAGILE | {"lease_s": "1", "heartbeat_s": "0.2"}))
    job = client.submit("single-try", stage.task("wait"))
    short = client.submit("tasks", {}, Job_Start_After="3")
    client.final(short)
    stage.go()
    done = client.final(job)
    assert (done["status"], done["attempt"], stage.starts) == ("succeeded", 1, [1])


def test_a_paused_worker_loses_its_lease_and_can_write_nothing(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve("--roles", "api,upkeep"))
    zombie = serve("--roles", "worker")
    job = client.submit("tasks", stage.task("wait", "return", value="second"))
    stage.wait_for_starts()
    zombie.signal(signal.SIGSTOP)
    try:
        serve("--roles", "worker")
        done = client.final(job)
        assert (done["status"], done["attempt"]) == ("succeeded", 2), client.attempts(job)
        stage.go()
        wait_until(lambda: "returned" in stage.ends, "the first run to return")
    finally:
        zombie.signal(signal.SIGCONT)
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
    assert client.job(job) == done
    outcomes = [attempt["outcome"] for attempt in client.attempts(job)]
    assert outcomes == ["worker_lost", "succeeded"]


def test_promise_6_a_job_is_found_at_once_by_another_process(serve: Serve, connect: Connect) -> None:
    one, two = connect(serve("--roles", "api")), connect(serve("--roles", "api"))
    for number in range(100):
        job = (one, two)[number % 2].submit("anything", number)
        assert (two, one)[number % 2].get(job["status_url"]).status_code == 200
    listed = [job["id"] for job in one.get("/v1/anything?limit=200").json()["jobs"]]
    assert listed == [job["id"] for job in two.get("/v1/anything?limit=200").json()["jobs"]]
    assert len(listed) == 100


def test_promise_5_one_key_is_one_job_over_two_processes(serve: Serve, connect: Connect) -> None:
    clients = [connect(serve("--roles", "api")) for _ in range(2)]
    for number in range(20):
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(each.post, "anything", number, Idempotency_Key=f"k{number}") for each in clients]
            answers = [call.result() for call in calls]
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 1


def test_a_store_of_another_app_is_refused(serve: Serve, tmp_path: Path) -> None:
    serve().stop()
    other = Server(tmp_path, app_ref="harness.other_app:app", settings=FRAGILE)
    other.launch()
    try:
        assert other.ended() != 0
        last = other.log.strip().splitlines()
        assert len(last) < 15, other.log
        assert "Traceback" not in other.log
        assert "contract" in other.log
    finally:
        other.kill()


def test_is_alive_knows_the_living() -> None:
    assert is_alive(os.getpid())
    assert not is_alive(2**22 + 1)
