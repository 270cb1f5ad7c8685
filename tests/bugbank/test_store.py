"""The store: shared by several processes, full, cut off from wake-ups, and never ahead of its disk."""

import re
import resource
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path

import apsw
import pytest

from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until
from contract.conftest import Connect, Serve
from harness.http import Client, JsonObject, problem
from harness.server import FRAGILE, Server

from .inside import look_inside
from .scale import scaled

CLOCK = SystemClock()
JSON = {"Content-Type": "application/json"}
UNLIMITED = resource.RLIM_INFINITY


def post(http: HTTPConnection, body: bytes) -> tuple[int, str | None]:
    """Hand in one job; returns the status and Retry-After."""
    http.request("POST", "/v1/anything", body, JSON | {"Job-Start-After": "3600"})
    answer = http.getresponse()
    answer.read()
    return answer.status, answer.getheader("retry-after")


def test_bb_095_many_writers_and_a_long_read_see_no_lock(serve: Serve, connect: Connect) -> None:
    """Every answer is a 202, or a 503 that says when to come again; and there are as many jobs as 202s."""
    servers = [serve("--roles", "api", settings=FRAGILE) for _ in range(scaled(3, 4))]
    ends_s = CLOCK.monotonic_s() + scaled(3, 60)

    def write(number: int) -> Counter[tuple[int, bool]]:
        http = HTTPConnection("127.0.0.1", servers[number % len(servers)].port, timeout=60)
        answers: Counter[tuple[int, bool]] = Counter()
        while CLOCK.monotonic_s() < ends_s:
            status, retry_after = post(http, b"%d" % number)
            answers[status, retry_after is not None] += 1
        http.close()
        return answers

    with closing(apsw.Connection(str(servers[0].store), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM job").fetchall()
        with ThreadPoolExecutor(25 * len(servers)) as pool:
            answers = sum(pool.map(write, range(25 * len(servers))), Counter[tuple[int, bool]]())
        reader.execute("ROLLBACK")
    assert set(answers) <= {(202, True), (503, True)}, answers
    assert look_inside(servers[0].store, "SELECT count(*) FROM job") == [(answers[202, True],)]
    for server in servers:
        assert "locked" not in server.log


def test_bb_096_work_is_found_without_any_wake_up(serve: Serve, connect: Connect) -> None:
    """The sockets of the wake-ups are taken away under running processes: the polls behind them are enough."""
    api = serve("--roles", "api")
    client = connect(api)
    serve("--roles", "worker")
    client.final(client.submit("anything", "warm-up"))
    for plug in Path(f"{api.store}-wake").iterdir():
        plug.unlink()
    for number in range(3):
        job = client.final(client.submit("anything", number))
        waited = datetime.fromisoformat(job["started_at"]) - datetime.fromisoformat(job["created_at"])
        assert waited.total_seconds() <= 2 + scaled(3, 0)


def limit_file_size(server: Server, bytes_max: int) -> None:
    """From now on the server can write no file beyond this size, as if the disk were full."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (bytes_max, UNLIMITED))


def test_bb_098_a_store_that_stops_under_load_keeps_what_was_accepted(serve: Serve, connect: Connect) -> None:
    """It takes no writes for a while, and then everything is killed."""
    server = serve()
    accepted: list[JsonObject] = []
    statuses: set[int] = set()
    is_over = threading.Event()

    def load(sender: int) -> None:
        client = Client(server.url)
        while not is_over.is_set():
            try:
                answer = client.post("anything", {"sender": sender, "text": "x" * 5000})
            except Exception:
                break
            statuses.add(answer.status_code)
            if answer.status_code == 202:
                accepted.append(answer.json())
            else:
                problem(answer, 503, "store-unavailable")
                assert answer.headers["retry-after"]
        client.close()

    with ThreadPoolExecutor(4) as pool:
        senders = [pool.submit(load, sender) for sender in range(4)]
        wait_until(lambda: len(accepted) > 50, "some load", 30)
        limit_file_size(server, server.store.stat().st_size)
        wait_until(lambda: 503 in statuses, "refusals", 30)
        count = len(accepted)
        limit_file_size(server, UNLIMITED)
        wait_until(lambda: len(accepted) > count, "service again", 30)
        server.kill()
        is_over.set()
        for sender in senders:
            sender.result()
    client = connect(serve())
    assert statuses == {202, 503}
    assert {client.final(job)["status"] for job in accepted} == {"succeeded"}


@contextmanager
def straced(server: Server, log: Path, *options: str) -> Iterator[None]:
    """Watch the server's system calls while the block runs."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    command = [strace, "-f", "-p", str(server.process.pid), "-o", str(log), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        first = tracer.stderr.readline()
        try:
            if "attached" not in first:
                pytest.skip(f"strace may not attach here: {first}")
            yield
        finally:
            tracer.terminate()


def test_bb_102_no_202_without_a_sync(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    """At least one sync for each answer to a client that waits for it; and while syncs fail, no answer but 503."""
    server = serve("--roles", "api")
    client = connect(server)
    job = client.submit("anything", 0)
    log = tmp_path / "syncs"
    with straced(server, log, "-e", "trace=fsync,fdatasync"):
        for number in range(20):
            client.submit("anything", number)
    assert len(re.findall(r"f(?:data)?sync\(\d+\) += 0", log.read_text())) >= 20
    with straced(server, log, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO"):
        refused = [client.post("anything", number) for number in range(5)]
        assert client.job(job) == job, "reads go on"
    for answer in refused:
        problem(answer, 503, "store-unavailable")
        assert answer.headers["retry-after"]
    wait_until(lambda: client.post("anything", "again").status_code == 202, "service again", 20)
    assert len(client.get("/v1/anything").json()["jobs"]) == 22
