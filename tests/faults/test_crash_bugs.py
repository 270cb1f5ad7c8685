"""The kills checked: with a bug that only a crash shows, a kill breaks the promise, and the checker says which."""

from pathlib import Path

import pytest

from faults.crash_bugs import acknowledge_before_commit, tell_after_commit
from faults.kills import API, NOT_API, hand_in_many
from faults.scene import opened_scene
from faults.test_kills import await_death, finish


@pytest.mark.parametrize(
    ("bug", "nth", "invariant"),
    [
        pytest.param(acknowledge_before_commit.__name__, 2, "I1", id="acknowledge-before-commit"),
        # Each commit is followed by that of its events, so that the even ones are those.
        pytest.param(tell_after_commit.__name__, 4, "I9", id="tell-after-commit"),
    ],
)
def test_a_bug_that_only_a_crash_shows_is_found(bug: str, nth: int, invariant: str, tmp_path: Path) -> None:
    with opened_scene(tmp_path) as scene:
        victim = scene.launch(API, f"before-commit:{nth}", bug=bug)
        scene.await_started(victim)
        hand_in_many(scene)
        await_death(victim)
        scene.await_started(scene.launch(f"{API},{NOT_API}"))
        scene.heal()
        with pytest.raises(AssertionError, match=rf"(?m)^{invariant} job_"):
            finish(scene)
