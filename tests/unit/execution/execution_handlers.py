"""The app the runners of these tests import: handlers that behave, and handlers that do not."""

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coatcheck.app import App
from coatcheck.core.backoff import Backoff
from coatcheck.core.files import File
from coatcheck.execution.job import BlockingJob, Job
from coatcheck.execution.verdicts import JobError, RetryLater
from coatcheck.testing.waiting import wait_until, wait_until_async

app = App("execution-tests")
AT_ONCE = Backoff(first_s=0.0)
PLENTY_S = 60.0


class Where(BaseModel):
    """A directory in which handlers leave marks, and a number."""

    folder: Path
    number: int = 0


class Total(BaseModel):
    total: int


def mark(where: Where, what: str, text: str = "") -> None:
    with (where.folder / what).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


@app.operation("double")
async def double(request: Where, job: Job) -> Total:
    return Total(total=2 * request.number)


@app.operation("double-in-thread")
def double_in_thread(request: Where, job: BlockingJob) -> Total:
    return Total(total=2 * request.number)


@app.operation("pid-in-process", runs_in="process")
def pid_in_process(request: Where, job: BlockingJob) -> int:
    return os.getpid()


@app.operation("crash", max_attempts=2, backoff=AT_ONCE)
async def crash(request: Where, job: Job) -> None:
    mark(request, "crashes", str(os.getpid()))
    wait_until((request.folder / "crash-now").exists, "the test lets it crash", PLENTY_S)
    os.kill(os.getpid(), signal.SIGKILL)


@app.operation("wait", backoff=AT_ONCE, max_attempts=3)
async def wait(request: Where, job: Job) -> int:
    """Wait for the file `go`, showing that it began and how it was stopped."""
    mark(request, "began", f"{job.id} {job.attempt}")
    try:
        await wait_until_async((request.folder / "go").exists, "the test lets it go", PLENTY_S)
    except asyncio.CancelledError:
        mark(request, "stopped", f"{job.id} {job.cancelled}")
        raise
    return request.number


@app.operation("short", timeout=0.05, max_attempts=2, backoff=AT_ONCE)
async def short(request: Where, job: Job) -> None:
    await asyncio.Event().wait()


@app.operation("deaf", max_attempts=1)
async def deaf(request: Where, job: Job) -> None:
    """Hold the loop for ever."""
    mark(request, "began", f"{job.id} {os.getpid()}")
    threading.Event().wait()


@app.operation("deaf-thread", max_attempts=1)
def deaf_thread(request: Where, job: BlockingJob) -> None:
    """Hold a thread for ever."""
    mark(request, "began", f"{job.id} {os.getpid()}")
    threading.Event().wait()


@app.operation("deaf-process", max_attempts=1, timeout=0.2, runs_in="process")
def deaf_process(request: Where, job: BlockingJob) -> None:
    mark(request, "began", f"{job.id} {os.getpid()}")
    threading.Event().wait()


@app.operation("polite-thread", max_attempts=1)
def polite_thread(request: Where, job: BlockingJob) -> str:
    mark(request, "began", job.id)
    wait_until(lambda: job.cancelled, "the job is cancelled", PLENTY_S)
    raise asyncio.CancelledError


@app.operation("raise", max_attempts=2, backoff=AT_ONCE)
async def raises(request: Where, job: Job) -> None:
    raise RuntimeError("secret \x00 of the \ud800 trade")


@app.operation("refuse")
async def refuse(request: Where, job: Job) -> None:
    raise JobError("limit_exceeded", "Too many\nbranches.", code="branches")


@app.operation("later", max_attempts=2)
async def later(request: Where, job: Job) -> str:
    if job.attempt == 1:
        raise RetryLater("1ms")
    return "now"


@app.operation("exit", max_attempts=1)
async def exits(request: Where, job: Job) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    await asyncio.gather(asyncio.create_task(leave()), return_exceptions=False)


@app.operation("exit-in-thread", max_attempts=1)
def exits_in_thread(request: Where, job: BlockingJob) -> None:
    raise KeyboardInterrupt


@app.operation("wrong-type")
async def wrong_type(request: Where, job: Job) -> Total:
    values: dict[str, Any] = {"total": "many"}
    return Total.model_construct(**values)


@app.operation("large", result_bytes_max=100)
async def large(request: Where, job: Job) -> str:
    return "x" * 100


@app.operation("huge", result_bytes_max=64 * 1024 * 1024)
async def huge(request: Where, job: Job) -> File:
    return File(b"x" * (40 * 1024 * 1024), "application/octet-stream", "huge.bin")


@app.operation("file")
async def file(request: Where, job: Job) -> Total | File:
    path = request.folder / "report.txt"
    path.write_text("a report", encoding="utf-8")
    return File(path, "text/plain", "report.txt")


@app.operation("progress")
async def progress(request: Where, job: Job) -> None:
    job.progress(1, 4, "one\nof four")
    await wait_until_async((request.folder / "go").exists, "the test lets it go", PLENTY_S)
    for done in range(4000):
        job.progress(done, 4000)
    job.progress(4, 4, "all")


@app.operation("effect", max_attempts=3, backoff=AT_ONCE)
async def effect(request: Where, job: Job) -> Total:
    async def pay() -> Total:
        mark(request, "paid", job.effect_key("pay"))
        return Total(total=7)

    paid = await job.effect("pay", pay, returns=Total)
    assert isinstance(paid, Total)
    if job.attempt < 3:
        raise RuntimeError("after the effect")
    plain = await job.effect("plain", lambda: {"tuple": (1, 2)})
    assert plain == {"tuple": [1, 2]}
    return paid


@app.operation("effect-in-thread", max_attempts=2, backoff=AT_ONCE)
def effect_in_thread(request: Where, job: BlockingJob) -> list[int]:
    def pay() -> list[int]:
        mark(request, "paid", job.effect_key("pay"))
        return [job.attempt]

    paid: list[int] = job.effect("pay", pay)
    if job.attempt == 1:
        raise RuntimeError("after the effect")
    return paid


@app.operation("spend", spend_max={"calls": 3}, max_attempts=3, backoff=AT_ONCE)
async def spend(request: Where, job: Job) -> list[float | None]:
    """Make `number` calls in each attempt; the first attempt fails after them."""
    lefts = [await job.spend(1, "calls") for _ in range(request.number)]
    mark(request, "spent", f"{job.attempt}")
    if job.attempt == 1:
        raise RuntimeError("after the calls")
    return [*lefts, await job.spend(0.25, "tokens")]


@app.operation("spend-in-thread", spend_max={"cost": 2.5}, max_attempts=1)
def spend_in_thread(request: Where, job: BlockingJob) -> list[float | None]:
    return [job.spend(request.number), job.spend(0.5)]


@app.operation("spend-at-once", spend_max={"calls": 40}, max_attempts=1)
async def spend_at_once(request: Where, job: Job) -> list[float]:
    lefts = await asyncio.gather(*(job.spend(1, "calls") for _ in range(request.number)))
    return sorted(left for left in lefts if left is not None)


@app.operation("spend-deaf", spend_max={"calls": 0}, max_attempts=3, backoff=AT_ONCE)
def spend_deaf(request: Where, job: BlockingJob) -> None:
    """Take no notice of being stopped."""
    try:
        job.spend(1, "calls")
    except asyncio.CancelledError:
        threading.Event().wait()


@app.operation("spend-and-crash", spend_max={"calls": 2}, max_attempts=3, backoff=AT_ONCE)
async def spend_and_crash(request: Where, job: Job) -> float | None:
    left = await job.spend(1, "calls")
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return left


@app.operation("long", processing_max=0.3, timeout="1h", max_attempts=9, backoff=AT_ONCE)
async def long(request: Where, job: Job) -> None:
    """The first attempt ends by itself; the second waits for ever."""
    if job.attempt == 1:
        raise RuntimeError("try again")
    mark(request, "began", str(job.attempt))
    await asyncio.Event().wait()


@app.operation("facts")
async def facts(request: Where, job: Job) -> dict[str, Any]:
    job.log.info("seen")
    return {
        "id": job.id,
        "attempt": job.attempt,
        "deadline": None if job.deadline is None else job.deadline.isoformat(),
        "seconds_left": job.seconds_left,
        "correlation_id": job.correlation_id,
        "tenant": job.tenant,
        "operation": job.operation,
        "cancelled": job.cancelled,
    }


@app.operation("look-around")
async def look_around(request: Where, job: Job) -> dict[str, Any]:
    """What a runner has inherited."""
    return {
        "sockets": [os.readlink(link) for link in _links() if os.readlink(link).startswith("socket:")],
        "store": os.environ.get("COATCHECK_STORE") or os.environ.get("COATCHECK_POSTGRES_LISTEN"),
        "files": [os.readlink(link) for link in _links() if ".db" in os.readlink(link)],
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "parent": os.getppid(),
    }


def _links() -> list[Path]:
    return [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
