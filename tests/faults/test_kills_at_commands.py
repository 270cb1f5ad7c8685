"""Killed while the store's schema is made, and in the middle of an operator's command."""

import signal
from pathlib import Path

import pytest

from faults.kills import ALL
from faults.places import ENGINES, MakePlace
from faults.scene import opened_scene
from faults.test_kills import finish

MIGRATION = "migration-step"
REDRIVE = "redrive-half"
POINTS = (MIGRATION, REDRIVE)

on_each_engine = pytest.mark.parametrize("make_place", ENGINES.values(), ids=ENGINES)


@on_each_engine
def test_a_migration_killed_at_a_step_has_not_happened(make_place: MakePlace, tmp_path: Path) -> None:
    with opened_scene(tmp_path, make_place(tmp_path)) as scene:
        steps = scene.place.migration_steps
        for nth in (1, steps // 2, steps):
            victim = scene.launch(ALL, f"{MIGRATION}:{nth}")
            assert victim.ended() == -signal.SIGKILL, victim.log
        scene.await_started(scene.launch(ALL))
        finish(scene)


@on_each_engine
def test_a_redrive_killed_half_way_has_not_happened(make_place: MakePlace, tmp_path: Path) -> None:
    with opened_scene(tmp_path, make_place(tmp_path)) as scene:
        scene.await_started(scene.launch(ALL))
        order = scene.order("work", "effect-fail")
        scene.until(order, "failed")
        assert order.job is not None
        redrive = ("dead-letters", "redrive", order.job["id"])
        assert scene.run_command(*redrive, crash_at=f"{REDRIVE}:1").returncode == -signal.SIGKILL
        before = scene.client.read(order.job)
        assert before is not None
        assert before.json["redriven_as"] is None
        scene.heal()
        done, again = scene.run_command(*redrive), scene.run_command(*redrive)
        assert done.returncode == 0, done.stderr
        assert again.stdout == done.stdout, "asked twice, it is the same new job"
        finish(scene)
        after = scene.client.read(order.job)
        assert after is not None
        assert after.json["redriven_as"] == done.stdout.strip()
