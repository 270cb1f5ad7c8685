"""A worker from its start to its end: claims, hints, signals, drains, stores that are away, parents that die."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from execution_handlers import app
from execution_world import QUICK, ExecutionWorld, make_worker, open_store, running_world
from flaky_store import FlakyStore

from coatcheck.admission.directory import Directory
from coatcheck.core.states import Status
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerFailed
from coatcheck.execution.worker import Worker
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until, wait_until_async

NEVER_POLLS = replace(QUICK, poll_s=600.0)


@pytest.mark.parametrize(
    ("app_ref", "reason"),
    [
        ("no_such_module:app", "There is no module 'no_such_module', neither here nor where packages are."),
        ("execution_handlers:nothing", "The module 'execution_handlers' has no attribute 'nothing'"),
        ("execution_handlers:mark", "'execution_handlers:mark' is a function, not a coatcheck App"),
    ],
)
async def test_a_worker_whose_runners_find_no_app_does_not_start(tmp_path: Path, app_ref: str, reason: str) -> None:
    store, clock = await open_store(tmp_path), SystemClock()
    worker = Worker(WorkerParts(store, app, app_ref, QUICK, Metrics(), clock, Directory(store, clock, {})))
    try:
        with pytest.raises(RunnerFailed, match=reason):
            await worker.start()
    finally:
        await worker.stop()
        await store.close()


async def test_an_idle_worker_is_woken_by_a_hint(tmp_path: Path) -> None:
    async with running_world(tmp_path, NEVER_POLLS) as world:
        assert await world.result(await world.submit("double", 2)) == {"total": 4}


async def test_an_idle_worker_is_woken_by_another_process(tmp_path: Path) -> None:
    async with running_world(tmp_path, NEVER_POLLS) as world:
        other = await open_store(tmp_path)
        try:
            elsewhere = ExecutionWorld(other, world.worker, world.metrics, tmp_path)
            assert await elsewhere.result(await elsewhere.submit("double", 2)) == {"total": 4}
        finally:
            await other.close()


async def test_a_job_that_waits_for_its_time_starts_then(tmp_path: Path) -> None:
    async with running_world(tmp_path, NEVER_POLLS) as world:
        due_at = world.clock.now() + 300
        job = await world.final(await world.submit("double", available_at=due_at))
        assert job.started_at is not None
        assert 0 <= job.started_at - due_at < 2_000


async def test_processes_are_bounded_and_their_jobs_take_turns(tmp_path: Path) -> None:
    async with running_world(tmp_path, replace(QUICK, solo_runners=1)) as world:
        jobs = [await world.submit("pid-in-process") for _ in range(5)]
        assert len({await world.result(job) for job in jobs}) == 1


async def test_a_worker_takes_no_more_than_can_start(tmp_path: Path) -> None:
    async with running_world(tmp_path, replace(QUICK, concurrency=2)) as world:
        jobs = [await world.submit("wait", number) for number in range(5)]
        await world.wait_marks("began", 2)
        statuses = [(await world.find(job)).status for job in jobs]
        assert statuses.count(Status.RUNNING) == 2
        world.let("go")
        assert [await world.result(job) for job in jobs] == list(range(5))


async def test_a_runner_leaves_signals_to_its_parent(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        facts = await world.result(await world.submit("look-around"))
        assert (facts["parent"], facts["group"]) == (os.getpid(), os.getpgid(0))
        os.kill(facts["pid"], signal.SIGINT)
        os.kill(facts["pid"], signal.SIGTERM)
        assert (await world.result(await world.submit("look-around")))["pid"] == facts["pid"]


def test_a_runner_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("runner_parent.py")), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), "the runner is gone")


async def test_a_drain_lets_running_jobs_finish_and_starts_none(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        running = await world.submit("wait", 1)
        await world.wait_marks("began")
        draining = asyncio.create_task(world.worker.drain(60.0))
        await asyncio.wait({draining}, timeout=0.05)
        waiting = await world.submit("double")
        world.let("go")
        await draining
        assert (await world.find(running)).status is Status.SUCCEEDED
        assert (await world.find(waiting)).status is Status.QUEUED


async def test_what_does_not_finish_in_the_grace_time_is_given_back_uncounted(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("wait")
        deaf = await world.submit("deaf-thread")
        await world.wait_marks("began", 2)
        await world.worker.drain(0.3)
        assert world.marks("stopped") == [f"{job_id} True"]
        for each in (job_id, deaf):
            job = await world.find(each)
            assert (job.status, job.attempt, job.counted_attempts) == (Status.QUEUED, 1, 0)
            assert await world.outcomes(each) == ["released"]


async def test_stopping_cuts_a_drain_short(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("wait")
        await world.wait_marks("began")
        draining = asyncio.create_task(world.worker.drain(600.0))
        await asyncio.wait({draining}, timeout=0.05)
        await world.worker.stop()
        await draining
        assert (await world.find(job_id)).counted_attempts == 0


async def test_an_outcome_waits_for_a_store_that_is_away(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    flaky = FlakyStore(store)
    metrics = Metrics()
    worker = make_worker(store, metrics, in_front=flaky)
    world = ExecutionWorld(store, worker, metrics, tmp_path)
    try:
        flaky.refusals["claim_ready"] = 2
        await worker.start()
        job_id = await world.submit("effect-in-thread")
        flaky.refusals += {"finish_attempt": 2, "extend_leases": 2, "record_effect": 1, "find_effect": 1}
        assert await world.result(job_id) == [1]
        assert await world.outcomes(job_id) == ["failed", "succeeded"]
        await wait_until_async(
            lambda: metrics.read("finished", operation="effect-in-thread", status="succeeded") == 1, ""
        )
        assert flaky.refusals["finish_attempt"] == 0
    finally:
        await worker.stop()
        await store.close()


async def test_one_claim_that_cannot_start_keeps_none_of_the_others_from_it(tmp_path: Path) -> None:
    faults = FaultPoints()
    faults.raise_at("claimed-before-start", RuntimeError("broken"))
    async with running_world(tmp_path, fault_point=faults) as world:
        first = await world.submit("double")
        assert await world.result(await world.submit("double", 1)) == {"total": 2}
        assert (await world.find(first)).status is Status.RUNNING


async def test_every_hand_off_is_a_fault_point(tmp_path: Path) -> None:
    faults = FaultPoints()
    async with running_world(tmp_path, fault_point=faults) as world:
        world.let("go")
        for operation in ("raise", "progress"):
            await world.final(await world.submit(operation))
        expected = {
            "claimed-before-start",
            "mid-handler",
            "result-stored-before-commit",
            "complete-after-commit",
            "retry-scheduled",
            "dead-lettered",
        }
        await wait_until_async(lambda: expected <= faults.names, f"{expected - faults.names} are passed")


async def test_log_lines_of_a_job_name_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with running_world(tmp_path, replace(QUICK, log_format="json")) as world:
        job_id = await world.submit("facts")
        await world.final(job_id)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if '"seen"' in line]
    assert [(line["job"], line["attempt"], line["tenant"], line["correlation_id"]) for line in lines] == [
        (job_id, 1, "default", "corr")
    ]


async def test_a_worker_that_waits_for_a_process_gives_its_job_back_when_stopped(tmp_path: Path) -> None:
    async with running_world(tmp_path, replace(QUICK, solo_runners=0)) as world:
        alone = await world.submit("crash")
        await world.wait_marks("crashes")
        world.let("crash-now")
        await wait_until_async(
            lambda: world.metrics.read("attempts", operation="crash", outcome="lost") == 1, "it died"
        )

        async def is_claimed_again() -> bool:
            return (await world.find(alone)).attempt == 2

        await wait_until_async(is_claimed_again, "it is claimed to run alone")
        assert len(world.marks("crashes")) == 1
        await world.cancel(alone)
        assert (await world.final(alone)).status is Status.CANCELLED
