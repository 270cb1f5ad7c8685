"""The checker checked: it finds every bug planted in the product, and nothing where there is none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from checked_world import World, tell_story
from planted_bugs import BUGS


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world that was made before any bug is planted."""
    made = World(tmp_path)
    yield made
    made.close()


def test_a_clean_story_breaks_no_promise(world: World) -> None:
    assert list(map(str, tell_story(world))) == []


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    bug = BUGS[name]
    with monkeypatch.context() as patch:
        bug.plant(patch)
        violations = tell_story(world)
    assert bug.breaks in {violation.invariant for violation in violations}, list(map(str, violations))
