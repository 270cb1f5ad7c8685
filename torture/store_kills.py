"""Writers of the store killed with SIGKILL: nothing acknowledged is lost, and no file that a kill leaves is refused."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from torture.outcome import Outcome, Task
from torture.store_lane import Tally

LANES = 2
SUMS = ("kills", "early_kills", "acknowledged", "finished", "unanswered", "replayed")


def run(task: Task) -> Outcome:
    """`task.amount` kills, shared by lanes that run side by side."""
    outcome = Outcome(dict.fromkeys(SUMS, 0))

    def run_lane(number: int) -> None:
        kills = task.amount // LANES + (number < task.amount % LANES)
        for tally in _tallies(task, number, kills):
            outcome.faults += tally.faults
            for name in SUMS:
                outcome.figures[name] = int(outcome.figures[name]) + int(getattr(tally, name))
            task.advance(tally.kills)

    with ThreadPoolExecutor(LANES) as pool:
        for lane in [pool.submit(run_lane, number) for number in range(LANES)]:
            lane.result()
    outcome.figures["broken"] = len(outcome.faults)
    return outcome


def _tallies(task: Task, number: int, kills: int) -> Iterator[Tally]:
    command = [sys.executable, "-m", "torture.store_lane", str(task.folder), str(kills), str(task.seed + number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as lane:
        assert lane.stdout is not None
        for line in lane.stdout:
            yield Tally(**json.loads(line))
    if lane.returncode != 0:
        raise RuntimeError(f"a lane of store kills ended with {lane.returncode}")
