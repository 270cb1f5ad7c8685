"""Clients: what they read fits, at once and everywhere, and nothing of theirs costs the service its balance."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import cycle

import psutil
import pytest

from coatcheck import App, Job
from coatcheck.declaration import DeclarationError
from coatcheck.store.clock import SystemClock
from contract.conftest import Connect, Serve
from harness.http import Client, JsonObject, problem
from harness.raw import connection
from harness.server import QUIET, Server
from harness.stage import Stage

from .scale import scaled

CLOCK = SystemClock()
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
MEBIBYTE = 1024 * 1024


def test_bb_041_a_job_is_found_at_once_in_another_process(serve: Serve, connect: Connect) -> None:
    one, other = (connect(serve("--roles", "api")) for _ in range(2))
    for number in range(scaled(200, 1000)):
        job = one.submit("anything", number)
        assert other.get(job["status_url"]).status_code == 200
        one, other = other, one


def test_bb_047_answers_come_at_once_while_handlers_take_their_time(client: Client, stage: Stage) -> None:
    answers = [client.post("tasks", stage.task("wait")) for _ in range(scaled(100, 500))]
    assert {answer.status_code for answer in answers} == {202}
    seconds = sorted(answer.elapsed.total_seconds() for answer in answers)
    assert seconds[round(len(seconds) * 0.99) - 1] < 0.5
    stage.go()
    for answer in answers:
        client.final(answer.json())


@pytest.mark.parametrize("value", ["1e9", "-1", "NaN", "1e999", "99999999999999999999", "[1]", "%5B%5D", "0x10", ""])
@pytest.mark.parametrize("name", ["limit", "cursor", "status"])
def test_bb_094_a_parameter_beyond_all_bounds_is_refused(client: Client, name: str, value: str) -> None:
    answer = client.get(f"/v1/jobs?{name}={value}")
    problem(answer, 400, "invalid-cursor" if name == "cursor" else "invalid-parameter")


def test_bb_094_such_parameters_cost_no_memory(client: Client, server: Server) -> None:
    memory = psutil.Process(server.process.pid).memory_info
    bad = cycle([f"limit={'9' * 2000}", f"cursor={'a' * 8000}", "&".join(["limit=1"] * 500), "status=" + "%41" * 2000])

    def send(count: int) -> None:
        for query in (next(bad) for _ in range(count)):
            assert client.get(f"/v1/jobs?{query}").status_code == 400

    send(100)
    before = memory().rss
    begun_s = CLOCK.monotonic_s()
    send(scaled(400, 5000))
    assert CLOCK.monotonic_s() - begun_s < scaled(10, 120)
    assert memory().rss - before < 8 * MEBIBYTE


def test_bb_106_lists_agree_with_what_each_job_says(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve())
    count = scaled(250, 5000)
    bodies: list[JsonObject] = [{"plan": ["return"]}, {"plan": ["fail:invalid_input"]}]
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda number: client.submit("tasks", bodies[number % 2]), range(count)))
        jobs += [client.submit("tasks", {}, Job_Start_After="3600") for _ in range(10)]
        client.cancel(jobs[-1])
        said = Counter(job["status"] for job in pool.map(lambda job: settled(client, job), jobs))
    listed = {status: all_pages(client, f"/v1/jobs?status={status}&limit=200") for status in STATUSES}
    assert {status: len(found) for status, found in listed.items()} == {status: said[status] for status in STATUSES}
    assert listed["running"] == []
    for found in listed.values():
        assert all(client.job(job) == job for job in found[:: scaled(10, 1)])
    assert len(all_pages(client, "/v1/jobs?limit=200")) == len(jobs)


def settled(client: Client, job: JsonObject) -> JsonObject:
    """The job as it will stay: ended, or waiting for a time far off."""
    now = client.job(job)
    return now if now["available_at"] > now["updated_at"] else client.final(job)


def all_pages(client: Client, url: str | None) -> list[JsonObject]:
    jobs: list[JsonObject] = []
    while url is not None:
        answer = client.get(url)
        jobs += answer.json()["jobs"]
        url = answer.links.get("next", {}).get("url")
    return jobs


def test_bb_110_clients_that_poll_are_spread_out(client: Client) -> None:
    job = client.submit("tasks", {}, Job_Start_After="50")
    advice = Counter(client.get(job["status_url"]).headers["retry-after"] for _ in range(scaled(300, 1000)))
    seconds = [int(value) for value in advice]
    assert min(seconds) >= 50 * 0.8 - 5
    assert max(seconds) <= 50 * 1.2 + 1
    assert max(advice.values()) <= advice.total() / 5, "nobody is told the same as a fifth of the others"
    client.cancel(job)


@pytest.mark.parametrize(
    "name",
    ["", "..", "../x", "q:", "*", "a*", "a/b", "a\nb", "a\x00b", "a b", "A", "é", "r\u0435p", "x" * 10_000],
)
def test_bb_093_a_name_that_could_mean_something_else_is_refused(name: str) -> None:
    async def nothing(request: int, job: Job) -> None: ...

    with pytest.raises(DeclarationError):
        App("shop").operation(name)(nothing)
    with pytest.raises(DeclarationError):
        App(name)


def test_bb_093_broken_frames_leave_every_port_up(serve: Serve, connect: Connect, free_port: int) -> None:
    server = serve("--roles", "api,worker", settings=QUIET)
    serve("--roles", "worker,upkeep", "--metrics-port", str(free_port), settings=QUIET)
    client = connect(server)
    junk = [
        b"\x00" * 4096,
        b"GET",
        b"\xff\xfe\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"*1\r\n$4\r\nPUSH\r\n",
        b"\r\n" * 999,
    ]
    for port in (server.port, free_port):
        for bytes_sent in junk:
            with connection(port) as plug:
                plug.sendall(bytes_sent)
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded"
    with closing(Client(f"http://127.0.0.1:{free_port}")) as other:
        assert other.get("/livez").status_code == 200
    assert not server.log_lines("unhandled_error")
