"""Leases: who holds one, when it ends, and who takes the work over."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

import pytest

from coatcheck.core.states import Status
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Beat, Claim
from coatcheck.testing.conformance.world import DONE, World, let_leases_run_out, watch
from coatcheck.testing.waiting import wait_until
from contract.conftest import Connect, Serve
from harness.http import JsonObject
from harness.processes import wait_until_dead
from harness.server import FRAGILE, Server
from harness.stage import Stage

from .inside import look_inside
from .scale import scaled
from .second_rescuer import SecondRescuer

CLOCK = SystemClock()
SHORTEST = FRAGILE | {"lease_s": "1"}
LEASE_S = 1.5
SLACK_S = 8.0


def beat_of(claim: Claim) -> Beat:
    return Beat(claim.lease)


def outcomes(attempts: list[JsonObject]) -> list[str]:
    return [attempt["outcome"] for attempt in attempts]


def test_bb_001_waiting_for_its_time_holds_no_lease(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve(settings=SHORTEST))
    for _ in range(2):
        serve("--roles", "worker", settings=SHORTEST)
    wait_s = scaled(3, 10)
    jobs = [client.submit("tasks", stage.task("return"), Job_Start_After=str(wait_s)) for _ in range(50)]
    for job in jobs:
        done = client.final(job)
        assert (done["status"], done["attempt"]) == ("succeeded", 1)
        assert datetime.fromisoformat(done["started_at"]) >= datetime.fromisoformat(job["available_at"])
    assert stage.starts == [1] * 50


@contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Processes that take all they get."""
    with ExitStack() as stack:
        for _ in range(count):
            hog = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(hog.kill)
        yield


class BeatGaps:
    """Watches the heartbeats of all leases from outside, and keeps the longest time one stood still."""

    def __init__(self, server: Server) -> None:
        self._store = server.store
        self._seen: dict[str, tuple[int, float]] = {}
        self.longest_s = 0.0
        self.fewest = 0

    def look(self) -> None:
        now_s = CLOCK.monotonic_s()
        rows = look_inside(self._store, "SELECT job_id, beat FROM lease")
        for job_id, beat in rows:
            before, since_s = self._seen.get(job_id, (-1, now_s))
            if beat != before:
                self._seen[job_id] = (beat, now_s)
            self.longest_s = max(self.longest_s, now_s - since_s)
        self.fewest = min((beat for _, beat in rows), default=0)


def test_bb_003_heartbeats_come_in_time_on_busy_cores(serve: Serve, connect: Connect, stage: Stage) -> None:
    """The handlers hold the runner's loop meanwhile, so a heartbeat cannot come from there."""
    lease_s, heartbeat_s = 3, 0.75
    server = serve("--workers", "2", settings=FRAGILE | {"lease_s": str(lease_s), "heartbeat_s": str(heartbeat_s)})
    client = connect(server)
    run_s = scaled(4, 12)
    jobs = [client.submit("single-try", stage.task("block")) for _ in range(2)]
    jobs += [client.submit("tasks", stage.task("wait")) for _ in range(scaled(10, 200))]
    stage.wait_for_starts(2)
    gaps = BeatGaps(server)
    with busy_cores():

        def lasted() -> bool:
            gaps.look()
            return gaps.fewest >= run_s / heartbeat_s

        wait_until(lasted, "heartbeats for the whole time", 60)
    stage.go()
    for job in jobs:
        done = client.final(job, 60)
        assert (done["status"], done["attempt"]) == ("succeeded", 1)
    assert stage.starts == [1] * len(jobs)
    assert gaps.longest_s <= lease_s * 2 / 3, "a third of the lease was left at every beat"


def test_bb_004_a_dead_worker_holds_no_place(serve: Serve, connect: Connect, stage: Stage) -> None:
    doomed = serve()
    first, second = (connect(doomed).submit("one-by-one", stage.task("wait", "return")) for _ in range(2))
    stage.wait_for_starts()
    doomed.kill()
    client = connect(serve())
    begun_s = CLOCK.monotonic_s()
    stage.wait_for_starts(2)
    assert CLOCK.monotonic_s() - begun_s < LEASE_S + SLACK_S
    stage.go()
    assert client.final(second)["status"] == "succeeded"
    assert outcomes(client.attempts(client.final(first))) == ["worker_lost", "succeeded"]


async def test_bb_005_liveness_belongs_to_the_lease_and_not_to_a_worker(world: World) -> None:
    """A worker that comes back under its old name keeps its new claims alive and none of its old ones."""
    old = await world.start()
    await world.reopen()
    new = await world.start()
    rescued = 0
    for _ in range(8):
        rescued += await watch(world, 3)
        await world.store.extend_leases([beat_of(new)], world.now)
    assert rescued == 1
    assert (await world.find(old.job.id)).status is Status.QUEUED
    assert (await world.find(new.job.id)).status is Status.RUNNING
    again = await world.restart(old.job.id)
    assert again.lease.attempt == 2


def test_bb_005_work_of_a_worker_that_is_long_gone_is_taken_over(serve: Serve, connect: Connect, stage: Stage) -> None:
    """Longer than a lease nobody is there at all, who might remember the worker."""
    doomed = serve()
    job = connect(doomed).submit("tasks", stage.task("wait", "return"))
    stage.wait_for_starts()
    doomed.kill()
    died_s = CLOCK.monotonic_s()
    wait_until(lambda: CLOCK.monotonic_s() - died_s > LEASE_S + 0.5, "more than a lease to pass")
    client = connect(serve())
    assert outcomes(client.attempts(client.final(job))) == ["worker_lost", "succeeded"]


def test_bb_006_when_a_rescuer_dies_at_work_another_goes_on(serve: Serve, connect: Connect, stage: Stage) -> None:
    doomed = serve("--roles", "api,worker")
    job = connect(doomed).submit("tasks", stage.task("wait", "return"))
    stage.wait_for_starts()
    doomed.kill()
    for place in ["reap-selected:1", "reap-updated:1"] * scaled(1, 10):
        rescuer = serve("--roles", "upkeep", settings=SHORTEST | {"crash_at": place})
        assert rescuer.ended() == -signal.SIGKILL
        rescuer.kill()
    assert look_inside(doomed.store, "SELECT attempt FROM lease") == [(1,)], "nothing came of it"
    client = connect(serve())
    begun_s = CLOCK.monotonic_s()
    assert client.final(job)["attempt"] == 2
    assert CLOCK.monotonic_s() - begun_s < LEASE_S + SLACK_S


async def test_bb_009_a_rescuer_that_was_stopped_takes_nothing_that_changed(world: World) -> None:
    """It has read that the lease ran out; meanwhile the attempt is lost, the job runs again, or it is done."""
    async with SecondRescuer(world) as rescuer:
        for number in range(scaled(40, 200)):
            claim = await world.start()
            await rescuer.choose()
            if number % 2:
                assert await let_leases_run_out(world) == 1
                claim = await world.restart(claim.job.id)
            else:
                await world.store.extend_leases([beat_of(claim)], world.now)
            before = await world.find(claim.job.id)
            assert await rescuer.write() == 0, "what changed meanwhile is not touched"
            assert await world.find(claim.job.id) == before
            done = await world.finish(claim, DONE)
            assert done.attempt == 1 + number % 2


@pytest.mark.parametrize("place", ["result-stored-before-commit:1", "complete-after-commit:1"])
def test_bb_010_a_crash_at_completion_leaves_no_place_taken(
    serve: Serve, connect: Connect, stage: Stage, place: str
) -> None:
    doomed = serve(settings=FRAGILE | {"crash_at": place})
    client = connect(doomed)
    jobs = [client.submit("one-by-one", stage.task("wait")) for _ in range(3)]
    stage.wait_for_starts()
    stage.go()
    assert doomed.ended() == -signal.SIGKILL
    doomed.kill()
    client = connect(serve())
    for job in jobs:
        assert client.final(job, LEASE_S + SLACK_S)["status"] == "succeeded"
    assert len(stage.starts) == (4 if place.startswith("result") else 3)


def test_bb_013_a_rescuer_that_does_not_know_the_kind_gives_it_back(
    serve: Serve, connect: Connect, stage: Stage
) -> None:
    """The start that was lost counts, as it does anywhere; the rescue costs nothing, and the kind's worker goes on."""
    client = connect(serve("--roles", "api", app_ref="bugbank.builds:before"))
    doomed = serve("--roles", "worker", app_ref="bugbank.builds:before")
    job = client.submit("other", stage.task("wait", "return"))
    stage.wait_for_starts()
    doomed.kill()
    wait_until_dead(stage.pids[0])
    stranger = serve("--roles", "worker,upkeep", app_ref="bugbank.builds:without_other")
    wait_until(lambda: bool(stranger.log_lines("attempts_rescued")), "the stranger to rescue it")
    waiting = client.job(job)
    assert (waiting["status"], waiting["attempt"], waiting["error"]) == ("queued", 1, None)
    assert client.final(client.submit("ledger", 1))["status"] == "succeeded", "the stranger works"
    assert client.job(job)["status"] == "queued", "what it does not know it leaves alone"
    serve("--roles", "worker", app_ref="bugbank.builds:before")
    done = client.final(job)
    assert (done["status"], stage.starts) == ("succeeded", [1, 2])
