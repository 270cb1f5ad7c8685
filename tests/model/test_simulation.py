"""Seeded stories of the whole service on virtual time: everything real but time, threads, processes and chance.

STORIES plays more of them. What fails here is told, with the command that plays it again, by the programme.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4
STORIES = int(os.environ.get("STORIES", "60"))
FIRST = int(os.environ.get("STORIES_FROM", "1"))
TIMEOUT_S = 60 + 10 * STORIES


def simulate(seeds: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Play stories in a process of their own, whose every random number comes from the seeds."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, "-m", "model.simulate", "--seeds", seeds, *options],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_story_breaks_a_promise(part: int) -> None:
    size = -(-STORIES // PARTS)
    first = FIRST + part * size
    played = simulate(f"{first}-{first + size - 1}")
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stderr == ""


def test_a_seed_tells_the_same_story_again() -> None:
    once, again = (simulate("7-9", "--digests").stdout for _ in range(2))
    assert once == again
    digests = [line.split()[1] for line in once.splitlines() if line[:1].isdigit() and len(line.split()) == 2]
    assert len(set(digests)) == 3
