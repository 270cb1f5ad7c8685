"""Stopped for longer than a lease and then let go on: a zombie writes nothing, and every promise is kept."""

import os
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from coatcheck.testing.waiting import wait_until
from faults.kills import ALL
from faults.scene import REST_S, Order, Scene, opened_scene
from faults.test_kills import finish
from harness.processes import members_of_session
from harness.server import Server
from pauses.stopped import LONGER_THAN_A_LEASE_S, await_stop, is_turn_taken, let_time_pass, stopped
from pauses.stops import STOPS, Stop


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_stop_breaks_no_promise(stop: Stop, tmp_path: Path) -> None:
    with opened_scene(tmp_path) as scene, ThreadPoolExecutor(1) as clients:
        stop.before(scene)
        beside = scene.launch(stop.beside)
        victim = scene.launch(stop.victim, f"{stop.point}:{stop.nth}:stop")
        scene.await_started(beside, victim)
        # Requests may have to wait until the process goes on.
        acting = clients.submit(stop.act, scene)
        try:
            await_stop(victim.process.pid, lambda: acting.done() and acting.result())
        except TimeoutError as error:
            logs = [server.log[-3000:] for server in (beside, victim)]
            raise AssertionError("\n".join([f"{error}, {scene.place.count_leftovers()}", *logs])) from error
        stand(scene, stop, acting)
        os.kill(victim.process.pid, signal.SIGCONT)
        scene.heal()
        acting.result(30)
        finish(scene)
        assert victim.is_running


def stand(scene: Scene, stop: Stop, acting: "Future[None]") -> None:
    """For longer than a lease; others meanwhile do all its work, if they can write."""
    if stop.relief and not is_turn_taken(scene.folder / "store.db"):
        scene.await_started(scene.launch(stop.relief))
        acting.result(30)
        scene.gate.touch()
        wait_until(lambda: not scene.place.count_leftovers()["open jobs"], "the others to do its work", REST_S)
    else:
        scene.gate.touch()
        let_time_pass(LONGER_THAN_A_LEASE_S)


def test_a_stopped_runner_keeps_its_lease(tmp_path: Path) -> None:
    with opened_scene(tmp_path) as scene:
        server, order = run_one(scene)
        with stopped(*members_of_session(server.process.pid)):
            let_time_pass(LONGER_THAN_A_LEASE_S)
            scene.gate.touch()
        expect_one_start(scene, order)


@pytest.mark.parametrize("with_runners", [False, True], ids=["control", "everything"])
def test_a_process_that_stood_does_not_rescue_its_own_jobs(tmp_path: Path, with_runners: bool) -> None:
    with opened_scene(tmp_path) as scene:
        server, order = run_one(scene)
        runners = members_of_session(server.process.pid) if with_runners else []
        with stopped(server.process.pid, *runners):
            let_time_pass(LONGER_THAN_A_LEASE_S)
        # Long enough for a rescue, if it were to come.
        let_time_pass(LONGER_THAN_A_LEASE_S)
        scene.gate.touch()
        expect_one_start(scene, order)


def test_who_could_not_beat_because_another_process_held_the_turn_is_not_rescued(tmp_path: Path) -> None:
    with opened_scene(tmp_path) as scene, ThreadPoolExecutor(1) as clients:
        _, order = run_one(scene)
        victim = scene.launch("api", "before-commit:1:stop")
        scene.await_started(victim)
        late = clients.submit(scene.order, "work", "return")
        await_stop(victim.process.pid)
        let_time_pass(LONGER_THAN_A_LEASE_S)
        os.kill(victim.process.pid, signal.SIGCONT)
        late.result(30)
        let_time_pass(LONGER_THAN_A_LEASE_S)
        scene.gate.touch()
        expect_one_start(scene, order)


def run_one(scene: Scene) -> tuple[Server, Order]:
    """A process with all roles in which one job waits for the gate."""
    server = scene.launch(ALL)
    scene.await_started(server)
    order = scene.order("work", "wait")
    scene.until(order, "running")
    return server, order


def expect_one_start(scene: Scene, order: Order) -> None:
    scene.until(order, "succeeded")
    scene.heal()
    finish(scene)
    assert order.job is not None
    reply = scene.client.read(order.job)
    assert reply is not None
    assert reply.json["attempt"] == 1
