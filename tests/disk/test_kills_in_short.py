"""The torture's kills in short; `make torture` kills many more."""

from pathlib import Path

from torture import database_restarts, stack_kills, store_kills
from torture.outcome import Task

STORE_KILLS = 300
STACK_KILLS = 5
RESTARTED_JOBS = 300


def ignore_progress(count: int) -> None:
    """Nobody watches."""


def test_writers_of_the_store_are_killed(tmp_path: Path) -> None:
    outcome = store_kills.run(Task(STORE_KILLS, 1, tmp_path, ignore_progress))
    assert outcome.faults == []
    assert outcome.figures["kills"] == STORE_KILLS
    assert int(outcome.figures["acknowledged"]) > STORE_KILLS
    # Many a kill leaves a commit that its client never heard of.
    assert int(outcome.figures["replayed"]) > STORE_KILLS // 10


def test_the_whole_service_is_killed(tmp_path: Path) -> None:
    outcome = stack_kills.run(Task(STACK_KILLS, 1, tmp_path, ignore_progress))
    assert outcome.faults == []
    assert outcome.figures["kills"] == STACK_KILLS
    assert int(outcome.figures["acknowledged"]) >= STACK_KILLS * stack_kills.ORDERS_EACH_KILL


def test_the_database_is_restarted(tmp_path: Path) -> None:
    outcome = database_restarts.run(Task(RESTARTED_JOBS, 1, tmp_path, ignore_progress))
    assert outcome.faults == []
    assert int(outcome.figures["acknowledged"]) > RESTARTED_JOBS
    assert int(outcome.figures["fast stops"]) >= 1
    assert int(outcome.figures["immediate stops"]) >= 1
    # Who asks while it is down is told so, and asks again.
    assert int(outcome.figures["asked again"]) >= 1
