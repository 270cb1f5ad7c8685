"""Promises: a store that cannot write is said so before acceptance, and recovery needs no human."""

import resource
from pathlib import Path

import pytest

from coatcheck.testing.waiting import wait_until
from harness.http import Client, JsonObject, problem
from harness.server import FRAGILE, Server
from harness.store_place import IS_A_FILE

from .conftest import Connect, Serve

pytestmark = pytest.mark.skipif(not IS_A_FILE, reason="a database's disk is looked after by its server")

UNLIMITED = resource.RLIM_INFINITY
LARGE = {"value": "x" * 200_000}
TRIES_MAX = 500


def limit_file_size(server: Server, bytes_max: int) -> None:
    """From now on the server can write no file beyond this size, as if the disk were full."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (bytes_max, UNLIMITED))


def fill(client: Client) -> list[JsonObject]:
    """Hand in work until the store is full; returns what was accepted."""
    accepted: list[JsonObject] = []
    for _ in range(TRIES_MAX):
        answer = client.post("anything", LARGE, Job_Start_After="3600")
        if answer.status_code != 202:
            problem(answer, 503, "store-unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            return accepted
        accepted.append(answer.json())
    raise AssertionError("the store never filled up")


def test_promise_10_a_full_disk_is_503_and_no_202(serve: Serve, connect: Connect) -> None:
    server = serve("--roles", "api,upkeep,relay", settings=FRAGILE)
    client = connect(server)
    limit_file_size(server, max(file.stat().st_size for file in files_of(server)) + 3_000_000)
    accepted = fill(client)
    assert accepted
    for job in accepted:
        assert client.job(job)["status"] == "queued", "what was accepted can still be read"
    limit_file_size(server, UNLIMITED)
    wait_until(lambda: client.post("anything", "again").status_code == 202, "service as before", 10)
    server.stop()
    again = connect(serve("--roles", "api"))
    listed = {job["id"] for job in again.get("/v1/anything?limit=200").json()["jobs"]}
    assert {job["id"] for job in accepted} <= listed
    assert len(listed) <= len(accepted) + 2, "what was refused left no job"


def test_promise_11_work_goes_on_when_the_disk_has_room_again(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    limit_file_size(server, max(file.stat().st_size for file in files_of(server)) + 1_000_000)
    fill(client)
    limit_file_size(server, UNLIMITED)
    wait_until(lambda: client.post("tasks", {}).status_code == 202, "service as before", 10)
    assert client.final(client.submit("tasks", {}), 10)["status"] == "succeeded"


def files_of(server: Server) -> list[Path]:
    return [file for file in server.store.parent.iterdir() if file.is_file()]


@pytest.mark.parametrize("damage", ["no database", "cut"])
def test_a_damaged_store_is_refused_with_a_sentence(
    serve: Serve, connect: Connect, tmp_path: Path, damage: str
) -> None:
    first = serve()
    for number in range(50):
        connect(first).submit("anything", "x" * 5000 + str(number))
    first.stop()
    content = first.store.read_bytes()
    first.store.write_bytes(b"this is no database" * 1000 if damage == "no database" else content[: len(content) // 2])
    refused = Server(tmp_path, settings=FRAGILE)
    refused.launch()
    try:
        assert refused.ended() != 0
        assert "Traceback" not in refused.log
        assert "store.db" in refused.log
    finally:
        refused.kill()
