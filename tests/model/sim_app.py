"""The app of every story: handlers that do what their request tells them, step by step."""

import asyncio
from typing import Any

from pydantic import BaseModel

from coatcheck.app import App
from coatcheck.core.backoff import Backoff
from coatcheck.core.errors import ErrorCategory
from coatcheck.execution.job import Job
from coatcheck.execution.verdicts import JobError, RetryLater
from coatcheck.testing.checker_evidence import EffectCall
from coatcheck.testing.history import Mark
from coatcheck.testing.simulation_loop import current_process, pass_time

from .sim_record import Record

LEASE_S = 15.0
QUEUE_LIMIT_S = 150.0
TIMEOUT_S = 45.0
SCARCE_MAX = 2


class Script(BaseModel):
    """What a handler has to do: words such as "work 2.5", "effect mail", "fail once"."""

    number: int
    steps: list[str]


def make_app(record: Record) -> App:
    app = App("story")
    backoff = Backoff(first_s=0.5, factor=2.0, max_s=8.0)

    @app.operation("tasks", timeout=TIMEOUT_S, backoff=backoff, queue_limit=QUEUE_LIMIT_S, max_attempts=4)
    async def tasks(request: Script, job: Job) -> dict[str, Any]:
        return await _perform(request, job, record)

    @app.operation("solos", timeout=TIMEOUT_S, backoff=backoff, queue_limit=None, max_attempts=3, runs_in="process")
    async def solos(request: Script, job: Job) -> dict[str, Any]:
        return await _perform(request, job, record)

    @app.operation(
        "scarce", timeout=TIMEOUT_S, backoff=backoff, queue_limit=None, max_attempts=2, concurrency=SCARCE_MAX
    )
    async def scarce(request: Script, job: Job) -> dict[str, Any]:
        return await _perform(request, job, record)

    return app


async def _perform(request: Script, job: Job, record: Record) -> dict[str, Any]:
    start = record.begin(job.id, job.attempt)
    mark = Mark.FAIL
    try:
        for step in request.steps:
            verb, _, rest = step.partition(" ")
            await _act(verb, rest, job, record)
        mark = Mark.OK
    finally:
        if current_process() is start.process:
            record.end(start, mark)
    return {"number": request.number, "attempt": job.attempt}


async def _act(verb: str, rest: str, job: Job, record: Record) -> None:
    match verb:
        case "work":
            await pass_time(float(rest))
        case "progress":
            job.progress(float(rest), message=f"at {rest}")
        case "effect":
            began_us = record.now_us()
            value = await job.effect(rest, record.do_effect)
            record.effects.append(EffectCall(job.id, job.attempt, rest, str(value), began_us))
        case "fail" if rest == "always" or job.attempt == 1:
            raise JobError(ErrorCategory.DEPENDENCY_UNAVAILABLE, "The other side is away.", retryable=True)
        case "refuse":
            raise JobError(ErrorCategory.INVALID_INPUT, "This cannot work.")
        case "later" if job.attempt == 1:
            raise RetryLater(float(rest))
        case "crash" if job.attempt == 1:
            process = current_process()
            assert process is not None
            process.kill()
            await pass_time(1.0)
        case "deaf":
            await _ignore_everything(float(rest))
        case _:
            return


async def _ignore_everything(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + seconds
    while loop.time() < ends_s:
        try:
            await pass_time(ends_s - loop.time())
        except asyncio.CancelledError:
            continue
