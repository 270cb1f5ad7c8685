"""Killed while it moves jobs out of the inbox: what a caller committed is there all the time, and runs once."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import asyncpg

from coatcheck.postgres import HandIn, submission
from harness.apps import app
from harness.http import Client, JsonObject
from harness.postgres_server import shared_server
from harness.server import FRAGILE, Server
from harness.stage import Stage

PROMOTED = "inbox-promoted"
JOBS = 5
EVENTS = "file:events.jsonl"


@contextmanager
def serving(folder: Path, dsn: str, roles: str, crash_at: str | None = None) -> Iterator[Server]:
    """A server on PostgreSQL, which may kill itself."""
    settings = FRAGILE | {"events": EVENTS} | ({} if crash_at is None else {"crash_at": crash_at})
    server = Server(folder, ["--store", dsn, "--roles", roles], settings)
    try:
        yield server.start()
    finally:
        server.kill()


async def hand_in_together(dsn: str, stage: Stage) -> list[HandIn]:
    """Several jobs, committed with one transaction of the caller's."""
    works = [submission(app, "tasks", stage.task("return"), paramstyle="$1") for _ in range(JOBS)]
    connection = await asyncpg.connect(dsn)
    async with connection.transaction():
        for work in works:
            await connection.execute(work.statement, *work.parameters)
    await connection.close()
    return works


def read(client: Client, work: HandIn) -> tuple[JsonObject, str]:
    """The job as it stands, and its tag."""
    answer = client.get(f"/v1/tasks/{work.job_id}")
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    job: JsonObject = answer.json()
    return job, answer.headers["ETag"]


def test_a_promoter_killed_before_its_commit_has_moved_nothing(tmp_path: Path) -> None:
    dsn = asyncio.run(shared_server().new_database())
    stage = Stage(tmp_path / "stage")
    with serving(tmp_path, dsn, "api") as edge, closing(Client(edge.url)) as client:
        with serving(tmp_path, dsn, "upkeep", f"{PROMOTED}:1") as victim:
            works = asyncio.run(hand_in_together(dsn, stage))
            seen = [read(client, work) for work in works]
            assert victim.ended() == -signal.SIGKILL, victim.log[-4000:]
        assert [read(client, work) for work in works] == seen
        assert {(job["status"], job["version"]) for job, _ in seen} == {("queued", 1)}
        with serving(tmp_path, dsn, "worker,upkeep"), serving(tmp_path, dsn, "upkeep"):
            ends = [client.final(job) for job, _ in seen]
        assert [job["status"] for job in ends] == ["succeeded"] * JOBS
        assert stage.starts == [1] * JOBS
        listed = client.get("/v1/tasks").json()["jobs"]
        assert {job["id"] for job in listed} == {work.job_id for work in works}
        assert len(listed) == JOBS
