"""The app of tests that need operations of their own."""

import os
from pathlib import Path
from typing import Any

from coatcheck import App, Backoff, BlockingJob, Job
from coatcheck.testing.waiting import wait_until
from harness.steps import Task, perform, perform_blocking

HERD_BACKOFF_S = 60.0
IMPORT_GATE = "BUGBANK_IMPORT_GATE"

app = App("bugbank")


@app.operation("herd", max_attempts=100, backoff=Backoff(first_s=HERD_BACKOFF_S, factor=1.0, max_s=HERD_BACKOFF_S))
async def herd(request: Task, job: Job) -> Any:
    """Fails, and waits for long before it is tried again."""
    return await perform(request, job)


@app.operation("alone", runs_in="process")
def alone(request: Task, job: BlockingJob) -> Any:
    """Runs in a process of its own, which is started when it is needed."""
    return perform_blocking(request, job)


def _wait_for_the_gate() -> None:
    """Make the import of this app take as long as a test wants: while the gate stands."""
    gate = os.environ.get(IMPORT_GATE)
    if gate is not None:
        wait_until(lambda: not Path(gate).exists(), "the gate to open", 60.0)


_wait_for_the_gate()
