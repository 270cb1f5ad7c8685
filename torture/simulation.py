"""Seeded simulations of the whole service on virtual time, with random faults; each story can be told again."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from torture.outcome import Outcome, Task
from torture.report import ROOT

LANES = 2
SEEDS_EACH_RUN = 25
SUM = re.compile(r"(\d+) stories, (\d+) broken; (\d+) jobs in ([\d.]+) h of service")


def run(task: Task) -> Outcome:
    """`task.amount` seeds, from the task's own on."""
    outcome = Outcome({"stories": 0, "broken": 0, "jobs": 0, "hours of service": 0.0})
    last = task.seed + task.amount - 1
    ranges = [(first, min(last, first + SEEDS_EACH_RUN - 1)) for first in range(task.seed, last + 1, SEEDS_EACH_RUN)]

    def tell(seeds: tuple[int, int]) -> str:
        text = _simulate(*seeds)
        task.advance(seeds[1] - seeds[0] + 1)
        return text

    with ThreadPoolExecutor(LANES) as pool:
        for text in pool.map(tell, ranges):
            _add(outcome, text)
    return outcome


def _simulate(first: int, last: int) -> str:
    command = [sys.executable, "-m", "model.simulate", "--seeds", f"{first}-{last}"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    ended = subprocess.run(
        command, cwd=ROOT / "tests", env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return ended.stdout + ended.stderr


def _add(outcome: Outcome, text: str) -> None:
    found = SUM.search(text)
    if found is None:
        outcome.faults.append(text[-2000:])
        return
    for name, count in zip(("stories", "broken", "jobs"), found.groups(), strict=False):
        outcome.figures[name] = int(outcome.figures[name]) + int(count)
    outcome.figures["hours of service"] = round(float(outcome.figures["hours of service"]) + float(found[4]), 1)
    if int(found[2]):
        told = re.split(r"^(?=seed )", text[: found.start()], flags=re.MULTILINE)
        outcome.faults += [story.strip() for story in told if story.strip()]
