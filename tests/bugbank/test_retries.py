"""Retries: spread out, never lost on the way, and still the same job."""

import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import apsw
import pytest

from coatcheck.core.states import Status
from coatcheck.store.operating import JobFilter, JobSurvey
from coatcheck.testing.conformance.world import DONE, FLAKY, TENANT, World, let_leases_run_out
from contract.conftest import Connect, Serve
from harness.http import Client, JsonObject
from harness.server import FRAGILE, Server, server_environment
from harness.stage import Stage

from .shop import HERD_BACKOFF_S

HERD = 500


def test_bb_022_what_fails_together_is_not_retried_together(serve: Serve, connect: Connect) -> None:
    client = connect(serve(app_ref="bugbank.shop:app"))
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: client.submit("herd", {"plan": ["raise"]}), range(HERD)))
        waiting = list(pool.map(lambda job: client.until(job, waits_again, "its failure"), jobs))
    failed_at = [moment(job, "updated_at") for job in waiting]
    waits_s = [(moment(job, "available_at") - at).total_seconds() for job, at in zip(waiting, failed_at, strict=True)]
    assert max(waits_s) <= HERD_BACKOFF_S
    assert max(waits_s) - min(waits_s) >= HERD_BACKOFF_S / 2
    seconds = Counter(moment(job, "available_at").replace(microsecond=0) for job in waiting)
    assert max(seconds.values()) <= HERD / 10


def waits_again(job: JsonObject) -> bool:
    return bool(job["status"] == "queued" and job["attempt"] > 0)


def moment(job: JsonObject, name: str) -> datetime:
    return datetime.fromisoformat(job[name])


async def test_bb_023_a_retry_that_cannot_be_stored_loses_nothing(world: World) -> None:
    """The store fails on that one write. The worker tries again, or its lease runs out: the job is there."""
    claim = await world.start()
    world.faults.raise_at("retry-scheduled", apsw.IOError("disk I/O error"))
    with pytest.raises(Exception, match="disk I/O error"):
        await world.finish(claim, FLAKY)
    assert (await world.find(claim.job.id)).status is Status.RUNNING
    assert await let_leases_run_out(world) == 1
    again = await world.restart(claim.job.id)
    assert (await world.finish(again, DONE)).attempt == 2


def test_bb_023_a_crash_at_the_retry_loses_nothing(serve: Serve, connect: Connect, stage: Stage) -> None:
    doomed = serve(settings=FRAGILE | {"crash_at": "retry-scheduled:1"})
    job = connect(doomed).submit("tasks", stage.task("wait-raise", "return"))
    stage.wait_for_starts()
    stage.go()
    assert doomed.ended() == -signal.SIGKILL
    doomed.kill()
    done = connect(serve()).final(job)
    assert (done["status"], done["attempt"]) == ("succeeded", 2)


@pytest.mark.parametrize("last", ["fails", "lost"])
async def test_bb_024_losses_and_failures_are_one_count_and_its_end_is_a_dead_letter(world: World, last: str) -> None:
    job_id = (await world.start(max_attempts=3)).job.id
    assert await let_leases_run_out(world) == 1
    assert (await world.finish(await world.restart(job_id), FLAKY)).status is Status.QUEUED
    assert await dead_letters(world) == []
    world.clock.advance(60)
    final_start = await world.restart(job_id)
    if last == "fails":
        await world.finish(final_start, FLAKY)
    else:
        assert await let_leases_run_out(world) == 1
    job = await world.find(job_id)
    assert (job.status, job.attempt, len(await world.store.list_attempts(TENANT, job_id))) == (Status.FAILED, 3, 3)
    assert await dead_letters(world) == [job_id]


async def dead_letters(world: World) -> list[str]:
    """What an operator is shown to run again."""
    survey = JobSurvey(JobFilter(is_dead_letter=True), 10)
    return [job.id for job in (await world.store.survey_jobs(survey, world.now)).jobs]


def redrive(server: Server, job: JsonObject) -> str:
    """Run a failed job again as an operator would; returns the new job's id."""
    command = [
        sys.executable,
        "-m",
        "coatcheck",
        "dead-letters",
        "redrive",
        job["id"],
        "--store",
        f"sqlite:///{server.store}",
    ]
    ended = subprocess.run(command, env=server_environment(), capture_output=True, text=True, check=True, timeout=60)
    return ended.stdout.strip()


def test_bb_025_a_redrive_is_a_new_job_that_both_sides_name(serve: Serve, connect: Connect) -> None:
    server = serve()
    client = connect(server)
    old = client.final(client.submit("tasks", {"plan": ["fail:dependency_unavailable"]}))
    new_id = redrive(server, old)
    assert new_id != old["id"]
    new = client.final(found(client, new_id))
    assert (new["redrive_of"], new["status"]) == (old["id"], "failed")
    linked = client.job(old)
    assert linked["redriven_as"] == new_id
    assert [linked[name] for name in ("status", "attempt", "error")] == [old[n] for n in ("status", "attempt", "error")]
    assert redrive(server, old) == new_id, "asking again makes no second one"


def found(client: Client, job_id: str) -> JsonObject:
    answer = client.get(f"/v1/tasks/{job_id}")
    assert answer.status_code == 200
    job: JsonObject = answer.json()
    return job
