"""The app of crowds: handlers write when they run and where, wait for the gate, and then run for a moment each."""

from pathlib import Path

from pydantic import BaseModel

from coatcheck import App, Job
from coatcheck.store.clock import SystemClock
from coatcheck.testing.history_runs import RunLog
from coatcheck.testing.waiting import wait_until_async

FEW_QUEUED_MAX, NARROW_RUNNING_MAX = 4, 2
SHARE_MAX = 0.5
MOMENT_S = 0.03
PATIENCE_S = 60.0
CLOCK = SystemClock()

app = App("crowd")


class Visit(BaseModel):
    history: Path
    gate: Path


async def perform(visit: Visit, job: Job) -> None:
    """One attempt. A process that is killed leaves a start without an end."""
    run = RunLog(visit.history, job.id, job.attempt)
    await wait_until_async(visit.gate.exists, "the gate", PATIENCE_S)
    ends_s = CLOCK.monotonic_s() + MOMENT_S
    await wait_until_async(lambda: CLOCK.monotonic_s() >= ends_s, "a moment to pass")
    run.returned()


@app.operation("wide")
async def wide(request: Visit, job: Job) -> None:
    await perform(request, job)


@app.operation("narrow", tenant_running=NARROW_RUNNING_MAX)
async def narrow(request: Visit, job: Job) -> None:
    await perform(request, job)


@app.operation("few", tenant_queued=FEW_QUEUED_MAX)
async def few(request: Visit, job: Job) -> None:
    await perform(request, job)


@app.operation("shared", max_share=SHARE_MAX)
async def shared(request: Visit, job: Job) -> None:
    await perform(request, job)
