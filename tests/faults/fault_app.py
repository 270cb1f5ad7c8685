"""The app whose processes are killed: its handlers write what they do into the history."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coatcheck import App, Backoff, Job, JobError
from coatcheck.declaration import RetentionOptions
from coatcheck.testing.history_runs import RunLog
from coatcheck.testing.waiting import wait_until_async

QUICK = Backoff(first_s=0.05, factor=1.0, max_s=0.05)
PATIENCE_S = 60.0
BRIEF_S = 1.0
KEPT_BRIEFLY: RetentionOptions = {
    "succeeded": BRIEF_S,
    "failed": BRIEF_S,
    "cancelled": BRIEF_S,
    "result": BRIEF_S,
    "tombstone": "1h",
}

app = App("faults")


class Work(BaseModel):
    """What each attempt does; the last step stands for all later ones.

    `wait` ends when the file `gate` is there. `padding` only makes the request large.
    """

    plan: list[str]
    history: Path
    gate: Path
    padding: str = ""

    def step(self, attempt: int) -> str:
        return self.plan[min(attempt, len(self.plan)) - 1]


async def perform(work: Work, job: Job) -> dict[str, int]:
    """One attempt."""
    run = RunLog(work.history, job.id, job.attempt)
    try:
        left = await _do(work, job, run)
    except BaseException as error:
        run.raised(type(error).__name__)
        raise
    run.returned()
    return {"attempt": job.attempt} if left is None else {"attempt": job.attempt, "left": int(left)}


async def _do(work: Work, job: Job, run: RunLog) -> float | None:
    """One step; what is left of what the job may spend, if it spends anything."""
    match work.step(job.attempt):
        case "raise":
            raise RuntimeError
        case "fail":
            raise JobError("handler_error", "It went wrong for good.")
        case "effect":
            await _record(job, run)
        case "effect-fail":
            await _record(job, run)
            raise JobError("handler_error", "It went wrong for good, after its effect.")
        case "wait":
            await wait_until_async(work.gate.exists, "the gate", PATIENCE_S)
        case "tell":
            job.progress(0.5, message="half-way")
            await wait_until_async(work.gate.exists, "the gate", PATIENCE_S)
        case "spend":
            return await job.spend(1, "calls")
    return None


async def _record(job: Job, run: RunLog) -> None:
    run.asks_effect("once")
    run.has_effect("once", await job.effect("once", lambda: {"job": job.id, "attempt": job.attempt}))


@app.operation("work", max_attempts=3, backoff=QUICK, spend_max={"calls": 2})
async def work(request: Work, job: Job) -> Any:
    return await perform(request, job)


@app.operation("doomed", max_attempts=2, backoff=QUICK)
async def doomed(request: Work, job: Job) -> Any:
    return await perform(request, job)


@app.operation("brief", backoff=QUICK, retention=KEPT_BRIEFLY)
async def brief(request: Work, job: Job) -> Any:
    return await perform(request, job)


@app.operation("priced", backoff=QUICK, cost={"tokens": lambda request: len(request.plan)})
async def priced(request: Work, job: Job) -> Any:
    return await perform(request, job)


@app.operation("dated", backoff=QUICK, deadline_max="1h")
async def dated(request: Work, job: Job) -> Any:
    return await perform(request, job)
