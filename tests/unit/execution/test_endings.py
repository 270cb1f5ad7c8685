"""How attempts end that do not end by themselves: cancelled, over their time, deaf, crashed, their lease lost."""

import os
import time
from dataclasses import replace
from pathlib import Path

import execution_world
import pytest
from execution_handlers import app
from execution_world import QUICK, ExecutionWorld, open_store, running_world

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import JobRecord
from coatcheck.core.states import Status
from coatcheck.store.clock import MACHINE, SystemClock
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until_async


def category(job: JobRecord) -> ErrorCategory | None:
    return None if job.error is None else job.error.category


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_cancelled_handler_is_asked_to_stop(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        waiting = await world.submit("wait")
        threaded = await world.submit("polite-thread")
        await world.wait_marks("began", 2)
        await world.cancel(waiting)
        await world.cancel(threaded)
        assert (await world.final(waiting)).status is Status.CANCELLED
        assert (await world.final(threaded)).status is Status.CANCELLED
        assert world.marks("stopped") == [f"{waiting} True"]
        assert world.metrics.read("runner_restarts") == 0


async def test_a_cancel_from_another_process_is_seen_at_the_next_heartbeat(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("wait")
        await world.wait_marks("began")
        other = await open_store(tmp_path)
        try:
            await other.cancel_job("default", job_id, None, app.policies, world.clock.now())
        finally:
            await other.close()
        assert (await world.final(job_id)).status is Status.CANCELLED


async def test_a_handler_over_its_time_is_tried_again_until_its_attempts_are_used_up(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job = await world.final(await world.submit("short"))
        assert (job.status, job.attempt, category(job)) == (Status.FAILED, 2, ErrorCategory.TIMEOUT)


async def test_all_attempts_together_may_take_no_longer_than_their_operation_allows(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job = await world.final(await world.submit("long"))
        assert (job.status, job.attempt, category(job)) == (Status.FAILED, 2, ErrorCategory.LIMIT_EXCEEDED)
        assert job.error is not None
        assert job.error.code == "processing-max"
        assert world.marks("began") == ["2"]


async def test_a_handler_at_its_deadline_is_stopped_for_good(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("wait", deadline_at=world.clock.now() + 500)
        job = await world.final(job_id)
        assert (job.status, job.attempt, category(job)) == (Status.FAILED, 1, ErrorCategory.DEADLINE_EXCEEDED)
        assert world.marks("stopped") == [f"{job_id} True"]


async def test_a_deaf_handler_is_fenced_off_and_killed_when_its_neighbours_are_done(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        neighbour = await world.submit("wait")
        await world.wait_marks("began")
        deaf = await world.submit("deaf-thread")
        pid = int((await world.wait_marks("began", 2))[1].split()[1])
        await world.cancel(deaf)
        assert (await world.final(deaf)).status is Status.CANCELLED
        # Its neighbour goes on; new work goes to another runner.
        assert is_running(pid)
        assert (await world.result(await world.submit("look-around")))["pid"] != pid
        world.let("go")
        assert (await world.final(neighbour)).status is Status.SUCCEEDED
        assert await world.outcomes(neighbour) == ["succeeded"]
        await wait_until_async(lambda: not is_running(pid), "the deaf runner is killed")


async def test_a_handler_that_holds_the_loop_is_named_and_fenced_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("deaf")
        await world.wait_marks("began")
        await wait_until_async(lambda: world.metrics.read("loop_blocked", operation="deaf") == 1, "it is noticed")
        line = next(record.getMessage() for record in caplog.records if "loop_blocked" in record.getMessage())
        assert f"job={job_id}" in line
        assert "execution_handlers.py" in line
        assert "threading.Event().wait()" in line
        await world.cancel(job_id)
        assert (await world.final(job_id)).status is Status.CANCELLED
        assert await world.result(await world.submit("double", 1)) == {"total": 2}


async def test_a_deaf_process_is_killed_at_once(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("deaf-process")
        pid = int((await world.wait_marks("began"))[0].split()[1])
        assert category(await world.final(job_id)) is ErrorCategory.TIMEOUT
        await wait_until_async(lambda: not is_running(pid), "the process is killed")


async def test_a_crasher_costs_none_of_its_neighbours_an_attempt(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        innocents = [await world.submit("wait", number) for number in range(50)]
        await world.wait_marks("began", 50)
        crasher = await world.submit("crash")
        await world.wait_marks("crashes")
        world.let("crash-now")
        world.let("go")
        job = await world.final(crasher, 60.0)
        assert (job.status, category(job)) == (Status.FAILED, ErrorCategory.WORKER_LOST)
        # Once among the others, not blamed; then alone until its attempts are used up.
        assert len(world.marks("crashes")) == 3
        assert (job.counted_attempts, job.attempt) == (2, 3)
        for number, job_id in enumerate(innocents):
            innocent = await world.final(job_id, 60.0)
            assert (innocent.status, innocent.counted_attempts) == (Status.SUCCEEDED, 1), number
            assert await world.outcomes(job_id) == ["worker_lost", "succeeded"], number


async def test_a_crash_of_the_only_job_is_its_own(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        world.let("crash-now")
        job = await world.final(await world.submit("crash"))
        assert (job.status, job.attempt, category(job)) == (Status.FAILED, 2, ErrorCategory.WORKER_LOST)


async def test_who_lost_its_lease_stops_and_writes_nothing(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        job_id = await world.submit("wait", max_attempts=2)
        await world.wait_marks("began")
        await _take_away_leases(tmp_path, world)
        # The second start is another lease; the first handler was told to stop.
        assert await world.wait_marks("began", 2) == [f"{job_id} 1", f"{job_id} 2"]
        await world.wait_marks("stopped")
        world.let("go")
        assert (await world.final(job_id)).status is Status.SUCCEEDED
        assert await world.outcomes(job_id) == ["worker_lost", "succeeded"]
        assert world.metrics.read("leases_lost", operation="wait") == 1


async def test_what_was_claimed_before_a_long_standstill_is_given_back_unstarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, stood_s = FaultPoints(), [0.0]
    machine = replace(MACHINE, monotonic_s=lambda: time.monotonic() + sum(stood_s))
    faults.call_at("claimed-before-start", lambda: stood_s.append(QUICK.lease_s + 0.1))
    monkeypatch.setattr(execution_world, "SystemClock", lambda: SystemClock(machine=machine))
    async with running_world(tmp_path, QUICK, faults) as world:
        world.let("go")
        job_id = await world.submit("wait", max_attempts=1)
        assert (await world.final(job_id)).status is Status.SUCCEEDED
        assert await world.outcomes(job_id) == ["released", "succeeded"]
        assert world.marks("began") == [f"{job_id} 2"]


async def _take_away_leases(folder: Path, world: ExecutionWorld) -> None:
    """Rescue every lease, as if its worker had been silent."""
    store = await open_store(folder, lease_s=0.0)
    try:
        # Once: a second look would take the next attempt's lease too. A heartbeat in between asks for another look.
        while not await store.rescue_leases(app.policies, world.clock.now(), 100):
            pass
    finally:
        await store.close()
