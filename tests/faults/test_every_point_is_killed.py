"""No fault point without a kill: a new one in the code fails here until a test dies at it."""

import pytest

from faults.kills import KILLS, kills_on
from faults.places import ENGINES, LACKS
from faults.points import passes, points_of_all, points_of_engine
from faults.test_kills_at_commands import POINTS
from faults.test_kills_at_inbox import PROMOTED
from faults.test_kills_at_revocations import HALF

HAND_OFFS = frozenset(
    {"request-read", "key-reserved", "before-commit", "committed-before-mark", "after-commit-before-response"}
    | {"claim-before-commit", "claimed-before-start", "mid-handler", "result-stored-before-commit"}
    | {"spent-before-answer"}
    | {"complete-after-commit", "retry-scheduled", "dead-lettered", "cancel-stored", "reap-selected", "reap-updated"}
    | {"outbox-written", "outbox-sent-before-mark", "purge-half", "tombstone-written", "redrive-half"}
    | {"response-half-sent", "migration-step", "wal-checkpoint", "inbox-promoted"}
    | {"revocation-half"}
)
"""Where work passes from one hand to the next: each has a point, whatever the code looks like."""


def test_every_fault_point_has_a_kill() -> None:
    points = {name for name, _ in passes()}
    killed = {kill.point for kill in KILLS} | {*POINTS, PROMOTED, HALF}
    assert sorted(points - killed) == [], "no test kills a process there"
    assert sorted(killed - points) == [], "gone from the code"


def test_every_hand_off_has_a_fault_point() -> None:
    assert sorted(HAND_OFFS - {name for name, _ in passes()}) == []


def test_every_pass_names_its_point() -> None:
    """A name that is put together at run time could not be found here."""
    assert [where for name, where in passes() if not name] == []


def test_every_kill_is_another() -> None:
    names = [str(kill) for kill in KILLS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_says_which_points_it_lacks(engine: str) -> None:
    has = points_of_engine(engine) | points_of_all()
    assert sorted(LACKS[engine]) == sorted(HAND_OFFS - has)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_point_of_an_engine_is_killed_on_it(engine: str) -> None:
    killed = {kill.point for kill in kills_on(engine)} | {*POINTS, PROMOTED, HALF}
    assert sorted(points_of_engine(engine) - killed) == []
