"""The long profile of the property tests: the same machines and laws as in the suite, many times as often."""

import os
import subprocess
import sys

from torture.outcome import Outcome, Task
from torture.report import ROOT

SUITES = ("tests/model", "tests/schema")
STEPS = 50


def run(task: Task) -> Outcome:
    """`task.amount` examples of each property."""
    lengths = {
        "MODEL_EXAMPLES": str(task.amount),
        "MODEL_STEPS": str(STEPS),
        "TORTURE_SCHEMA_EXAMPLES": str(task.amount),
    }
    options = ["-q", "-p", "no:cacheprovider", "--timeout=0", f"--hypothesis-seed={task.seed}"]
    command = [sys.executable, "-m", "pytest", *options, *SUITES]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | lengths, capture_output=True, text=True, check=False)
    task.advance(task.amount)
    last = ended.stdout.strip().splitlines()[-1:]
    outcome = Outcome({"examples each": task.amount, "suite": last[0] if last else "said nothing"})
    if ended.returncode != 0:
        outcome.faults.append(ended.stdout[-4000:])
    return outcome
