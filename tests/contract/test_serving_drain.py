"""Serving: the first signal drains, the second stops, and no work is lost or counted."""

import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, problem
from harness.server import QUIET
from harness.stage import Stage

from .conftest import Connect, Serve

# Two signals nearer to each other than a person's may be one that came twice.
ONE_SIGNAL = timedelta(seconds=0.4)
SLOW_DRAIN = QUIET | {"drain_delay_s": "2", "grace_s": "20"}


def is_draining(client: Client) -> bool:
    return client.get("/readyz").status_code == 503


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(serve: Serve, connect: Connect, stage: Stage, number: signal.Signals) -> None:
    server = serve(settings=SLOW_DRAIN)
    client = connect(server)
    job = client.submit("single-try", stage.task("wait", value="finished in the grace time"))
    stage.wait_for_starts()
    server.signal(number)
    wait_until(lambda: is_draining(client), "/readyz to say no")
    refused = client.post("tasks", {})
    problem(refused, 503, "draining")
    assert int(refused.headers["retry-after"]) >= 1
    assert client.get("/livez").status_code == 200
    assert client.job(job)["status"] == "running", "what was accepted can still be read"
    stage.go()
    assert server.ended() == 0
    again = connect(serve())
    done = again.job(job)
    assert (done["status"], done["attempt"]) == ("succeeded", 1)


def test_no_work_is_claimed_while_draining(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve("--concurrency", "1", settings=SLOW_DRAIN)
    client = connect(server)
    first = client.submit("tasks", stage.task("wait"))
    stage.wait_for_starts()
    second = client.submit("tasks", stage.task("return"))
    server.signal(signal.SIGTERM)
    wait_until(lambda: is_draining(client), "/readyz to say no")
    stage.go()
    assert server.ended() == 0
    assert stage.starts == [1]
    again = connect(serve())
    assert again.final(second)["attempt"] == 1
    assert again.job(first)["status"] == "succeeded"


def test_what_does_not_finish_is_given_back_uncounted(
    serve: Serve, connect: Connect, stage: Stage, neighbour: Stage
) -> None:
    server = serve(settings=QUIET | {"grace_s": "0.3"})
    client = connect(server)
    kinds = ("single-try", "thread-tasks", "process-tasks")
    jobs = [client.submit(kind, stage.task("wait")) for kind in kinds]
    deaf = client.submit("single-try", neighbour.task("deaf"))
    stage.wait_for_starts(len(kinds))
    neighbour.wait_for_starts()
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    stage.go()
    neighbour.go()
    again = connect(serve())
    for job in [*jobs, deaf]:
        done = again.final(job)
        assert (done["status"], done["attempt"]) == ("succeeded", 2), "the start it gave back does not count"
    assert again.attempts(jobs[0])[0]["outcome"] == "released"


def test_what_is_given_back_goes_to_another_worker_at_once(serve: Serve, connect: Connect, stage: Stage) -> None:
    long_lease = QUIET | {"lease_s": "60", "grace_s": "0.2"}
    client = connect(serve("--roles", "api", settings=long_lease))
    leaving = serve("--roles", "worker", settings=long_lease)
    job = client.submit("single-try", stage.task("wait"))
    stage.wait_for_starts()
    serve("--roles", "worker", settings=long_lease)
    leaving.signal(signal.SIGTERM)
    stage.wait_for_starts(2, timeout_s=10)
    assert leaving.ended() == 0
    stage.go()
    assert client.final(job)["attempt"] == 2


def test_a_second_signal_stops_now(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve(settings=QUIET | {"grace_s": "600", "drain_delay_s": "600"})
    client = connect(server)
    job = client.submit("single-try", stage.task("wait"))
    deaf = client.submit("tasks", stage.task("deaf"))
    stage.wait_for_starts(2)
    server.signal(signal.SIGTERM)
    wait_until(lambda: is_draining(client), "/readyz to say no")
    told_at = datetime.now(UTC)
    wait_until(lambda: datetime.now(UTC) - told_at > ONE_SIGNAL, "a signal of its own to be due")
    server.signal(signal.SIGTERM)
    assert server.ended(10) == 128 + signal.SIGTERM
    server.kill()
    stage.go()
    again = connect(serve())
    for left in (job, deaf):
        assert again.final(left)["status"] == "succeeded"


def test_signals_that_keep_coming_stop_it(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve(settings=QUIET | {"grace_s": "600", "drain_delay_s": "600"})
    connect(server).submit("tasks", stage.task("deaf"))
    stage.wait_for_starts()

    def insist() -> bool:
        server.signal(signal.SIGTERM)
        return not server.is_running

    wait_until(insist, "the server to stop", 10)
    server.kill()


def test_waits_and_streams_end_at_the_drain(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve(settings=SLOW_DRAIN | {"wait_max_s": "30"})
    client = connect(server)
    job = client.submit("tasks", stage.task("wait"))
    client.running(job)

    def wait() -> httpx.Response:
        return client.get(job["status_url"], Prefer="wait=30")

    with client.stream(job) as events, ThreadPoolExecutor(1) as pool:
        assert next(events).type == "status"
        waiting = pool.submit(wait)
        wait_until(lambda: next(events).type == "comment", "the stream to idle")
        server.signal(signal.SIGTERM)
        rest = [event.type for event in events]
        assert set(rest) <= {"comment"}
        answer = waiting.result(10)
    assert answer.status_code in (200, 503)
    if answer.status_code == 200:
        assert answer.json()["status"] == "running"
    stage.go()
    assert server.ended() == 0


def test_a_wait_on_post_that_the_drain_ends_is_still_accepted(serve: Serve, connect: Connect, stage: Stage) -> None:
    server = serve(settings=SLOW_DRAIN | {"wait_max_s": "30", "grace_s": "0.2"})
    client = connect(server)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.post, "single-try", stage.task("wait"), Prefer="wait=30")
        stage.wait_for_starts()
        server.signal(signal.SIGTERM)
        answer = waiting.result(10)
    assert answer.status_code == 202
    assert server.ended() == 0
    stage.go()
    assert connect(serve()).final(answer.json())["status"] == "succeeded"


def test_the_port_is_closed_after_the_drain(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    assert client.get("/livez").status_code == 200
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    with pytest.raises(httpx.TransportError):
        client.get("/livez")


def test_every_answer_during_the_end_is_an_acceptance_or_a_refusal(serve: Serve, connect: Connect) -> None:
    """Work handed in while the server goes down is accepted for good, refused, or the connection fails."""
    server = serve(settings=QUIET | {"drain_delay_s": "0.3"})
    url = server.url
    accepted: list[dict[str, object]] = []

    def hand_in() -> None:
        with httpx.Client(base_url=url, timeout=10) as http:
            while True:
                try:
                    answer = http.post("/v1/anything", json={})
                except httpx.TransportError:
                    return
                assert answer.status_code in (202, 503), answer.text
                if answer.status_code == 202:
                    accepted.append(answer.json())

    with ThreadPoolExecutor(3) as pool:
        senders = [pool.submit(hand_in) for _ in range(3)]
        wait_until(lambda: len(accepted) > 50, "some load")
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
        for sender in senders:
            sender.result()
    client = connect(serve())
    for job in accepted:
        assert client.final(job)["status"] == "succeeded"
