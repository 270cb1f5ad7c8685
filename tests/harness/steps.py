"""What a handler under test does: each attempt performs one step of its request's plan."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from coatcheck import BlockingJob, File, Job, JobError, RetryLater
from coatcheck.testing.waiting import wait_until, wait_until_async

PRIVATE_WORDS = "words-that-stay-with-the-operator"
GO = "go"
STARTS = "starts"
ENDS = "ends"
PROGRESS = "progress"
PATIENCE_S = 60.0

AnyJob = Job | BlockingJob


class Task(BaseModel):
    """A request that says what each attempt does; the last step stands for all later ones.

    folder: where the handler writes its traces and finds what the test tells it.
    """

    model_config = ConfigDict(extra="forbid")

    plan: list[str] = ["return"]
    folder: str | None = None
    value: Any = None

    def step(self, attempt: int) -> tuple[str, list[str]]:
        """The step of this attempt and its arguments."""
        name, *arguments = self.plan[min(attempt, len(self.plan)) - 1].split(":")
        return name, arguments

    def trace(self, name: str, words: str) -> None:
        """Append a line to a file of the folder."""
        if self.folder is not None:
            with (Path(self.folder) / name).open("a") as file:
                file.write(words + "\n")

    def may_go(self) -> bool:
        """Whether the test has told the handlers of this folder to end."""
        return self.folder is not None and (Path(self.folder) / GO).exists()


async def perform(task: Task, job: Job) -> Any:
    """One attempt of an `async def` handler."""
    task.trace(STARTS, f"{job.attempt} {os.getpid()}")
    step, arguments = task.step(job.attempt)
    try:
        await _wait_async(step, task, job)
        recorded = await job.effect("once", lambda: _effect(task, job)) if step.startswith("effect") else None
        result = _end(step, arguments, task, job) if step != "effect" else recorded
    except asyncio.CancelledError:
        task.trace(ENDS, f"stopped {job.cancelled}")
        raise
    task.trace(ENDS, "returned")
    return result


def perform_blocking(task: Task, job: BlockingJob) -> Any:
    """One attempt of a `def` handler."""
    task.trace(STARTS, f"{job.attempt} {os.getpid()}")
    step, arguments = task.step(job.attempt)
    if step.startswith("wait"):
        wait_until(lambda: task.may_go() or job.cancelled, "go", PATIENCE_S)
        if job.cancelled:
            task.trace(ENDS, "stopped True")
            raise RuntimeError(PRIVATE_WORDS)
    if step == "deaf":
        wait_until(task.may_go, "go", PATIENCE_S)
    recorded = job.effect("once", lambda: _effect(task, job)) if step.startswith("effect") else None
    result = _end(step, arguments, task, job) if step != "effect" else recorded
    task.trace(ENDS, "returned")
    return result


async def _wait_async(step: str, task: Task, job: Job) -> None:
    if step.startswith("wait"):
        await wait_until_async(task.may_go, "go", PATIENCE_S)
    if step == "cleanup":
        with contextlib.suppress(asyncio.CancelledError):
            await wait_until_async(task.may_go, "go", PATIENCE_S)
    while step == "deaf" and not task.may_go():
        with contextlib.suppress(asyncio.CancelledError):
            await wait_until_async(task.may_go, "go", PATIENCE_S)
    if step == "block":
        wait_until(task.may_go, "go", PATIENCE_S)
    if step == "progress":
        await wait_until_async(_ProgressReader(task, job).tell, "go", PATIENCE_S)


class _ProgressReader:
    """Reports each line the test appends to the folder's progress file: `done total message`."""

    def __init__(self, task: Task, job: Job) -> None:
        assert task.folder is not None
        self._task = task
        self._job = job
        self._told = 0
        self._file = Path(task.folder) / PROGRESS

    def tell(self) -> bool:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        for line in lines[self._told :]:
            done, total, message = line.split(" ", 2)
            self._job.progress(float(done), float(total), message)
        self._told = len(lines)
        return self._task.may_go()


def _effect(task: Task, job: AnyJob) -> dict[str, Any]:
    task.trace("effects", str(job.attempt))
    return {"done_by": job.attempt, "key": job.effect_key("once")}


def _end(step: str, arguments: list[str], task: Task, job: AnyJob) -> Any:
    if step in {"raise", "wait-raise", "effect-raise"}:
        raise RuntimeError(PRIVATE_WORDS)
    if step == "log":
        job.log.info("handler_was_here")
    if step == "fail":
        raise JobError(arguments[0], "The reason for clients.", code=arguments[1] if len(arguments) > 1 else None)
    if step == "retryable":
        raise JobError(arguments[0], "The reason for clients.", retryable=True)
    if step == "later":
        raise RetryLater(float(arguments[0]))
    if step in _ENDS:
        return _ENDS[step]()
    if step == "text":
        return "x" * int(arguments[0])
    return {"value": task.value, "attempt": job.attempt, "job": job.id}


def _kill() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def _exit() -> NoReturn:
    os._exit(3)


def _raise_dirty() -> NoReturn:
    raise RuntimeError("nul \x00 surrogate \ud800 \x1b[31mred " + "x" * 10_000_000)


def _raise_dirty_job_error() -> NoReturn:
    raise JobError("handler_error", "nul \x00 surrogate \ud800 \x1b[31mred " + "x" * 100_000, code="c\x00" * 100)


_ENDS: dict[str, Callable[[], Any]] = {
    "kill": _kill,
    "exit": _exit,
    "wait-exit": _exit,
    "effect-exit": _exit,
    "dirty": _raise_dirty,
    "dirty-job-error": _raise_dirty_job_error,
    "object": object,
    "nan": lambda: float("nan"),
    "surrogate": lambda: "half \ud800",
    "unicode": lambda: {"größe": "smörgåsbord ☃", "deep": [1, 2.5, None, True]},
    "file": lambda: File("naïve,résumé\n".encode(), "text/csv; charset=utf-8", name="report.csv"),
    "json-bytes": lambda: json.loads('{"a": 1}'),
}
