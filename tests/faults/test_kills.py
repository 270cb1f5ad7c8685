"""Killed at every hand-off, in every role: once the process is back, every promise has been kept."""

import signal
from pathlib import Path

import pytest

from coatcheck.testing.waiting import wait_until
from faults.kills import Kill, kills_on
from faults.places import ENGINES, MakePlace
from faults.scene import Scene, opened_scene
from harness.processes import members_of_session
from harness.server import Server


@pytest.mark.parametrize(
    ("make_place", "kill"),
    [
        pytest.param(make_place, kill, id=f"{engine}-{kill}")
        for engine, make_place in ENGINES.items()
        for kill in kills_on(engine)
    ],
)
def test_a_kill_breaks_no_promise(make_place: MakePlace, kill: Kill, tmp_path: Path) -> None:
    with opened_scene(tmp_path, make_place(tmp_path)) as scene:
        kill.before(scene)
        victim = scene.launch(kill.victim, f"{kill.point}:{kill.nth}")
        scene.await_started(*([scene.launch(kill.beside)] if kill.beside else []), victim)
        kill.act(scene)
        await_death(victim)
        scene.gate.touch()
        scene.await_started(scene.launch(kill.again or kill.victim))
        scene.heal()
        kill.then(scene)
        finish(scene)


def await_death(victim: Server) -> None:
    """Its own hand killed it, and what it had started ends by itself."""
    assert victim.ended() == -signal.SIGKILL, victim.log[-4000:]
    wait_until(lambda: not members_of_session(victim.process.pid), "its runners to end")


def finish(scene: Scene) -> None:
    """All that was wanted is got, and service is as ever."""
    scene.ask_again()
    probe = scene.order("work", "return")
    evidence = scene.come_to_rest()
    assert probe.job is not None
    assert evidence.final_jobs[probe.job["id"]]["status"] == "succeeded"
    assert evidence.runs, "handlers wrote their lines"
    assert evidence.events, "events were told"
