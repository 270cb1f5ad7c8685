"""The app that contract tests serve: operations of every kind and policy."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coatcheck import App, Backoff, BlockingJob, File, Job
from harness.steps import Task, perform, perform_blocking

QUICK = Backoff(first_s=0.05, factor=1.0, max_s=0.05)

app = App("contract")


class Branch(BaseModel):
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{2,40}$")]
    shelves: Annotated[int, Field(ge=0, le=1000)] = 1


class Report(BaseModel):
    """A request with many ways to be wrong."""

    model_config = ConfigDict(extra="forbid")

    branches: list[Branch] = []
    format: Literal["json", "csv"] = "json"
    paper: Branch | int | None = None
    a_tilde: dict[str, int] = Field(default={}, alias="a/b~c")


class Facts(BaseModel):
    id: str
    attempt: int
    tenant: str
    operation: str
    correlation_id: str
    deadline: datetime | None
    seconds_left: float | None


@app.operation("tasks", max_attempts=3, backoff=QUICK)
async def tasks(request: Task, job: Job) -> Any:
    """Do what the plan says, on the runner's loop."""
    return await perform(request, job)


@app.operation("thread-tasks", max_attempts=3, backoff=QUICK)
def thread_tasks(request: Task, job: BlockingJob) -> Any:
    return perform_blocking(request, job)


@app.operation("process-tasks", max_attempts=3, backoff=QUICK, runs_in="process")
def process_tasks(request: Task, job: BlockingJob) -> Any:
    return perform_blocking(request, job)


@app.operation("reports", path="/shop/reports")
async def reports(request: Report, job: Job) -> dict[str, int]:
    return {"branches": len(request.branches)}


@app.operation("anything")
async def anything(request: Any, job: Job) -> Any:
    return request


@app.operation("facts")
async def facts(request: Task, job: Job) -> Facts:
    return Facts(
        id=job.id,
        attempt=job.attempt,
        tenant=job.tenant,
        operation=job.operation,
        correlation_id=job.correlation_id,
        deadline=job.deadline,
        seconds_left=job.seconds_left,
    )


@app.operation("files")
async def files(request: Task, job: Job) -> File:
    return File(b"%PDF-" + bytes(range(256)) * 400, "application/pdf", name="stock report.pdf")


@app.operation("either")
async def either(request: Task, job: Job) -> dict[str, Any] | File:
    result: dict[str, Any] | File = await perform(request, job)
    return result


@app.operation("typed")
async def typed(request: Task, job: Job) -> int:
    result: int = await perform(request, job)
    return result


@app.operation("single-try", max_attempts=1)
async def single_try(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("one-by-one", concurrency=1)
async def one_by_one(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("keyed", key_required=True)
async def keyed(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("short-key", key_window="1s", retention="1h")
async def short_key(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation(
    "brief",
    max_attempts=2,
    backoff=QUICK,
    retention={
        "succeeded": "1s",
        "failed": "1s",
        "cancelled": "1s",
        "result": "1s",
        "tombstone": "1h",
    },
)
async def brief(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation(
    "brief-tombstone",
    key_window="1s",
    retention={
        "succeeded": "0.5s",
        "failed": "0.5s",
        "cancelled": "0.5s",
        "result": "0.5s",
        "tombstone": "1s",
    },
)
async def brief_tombstone(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("brief-result", retention={"succeeded": "1h", "result": "1s"})
async def brief_result(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("impatient", queue_limit="1s", concurrency=1)
async def impatient(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("hasty", timeout="0.3s", max_attempts=2, backoff=QUICK)
async def hasty(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("dated", deadline="30m", deadline_max="1h")
async def dated(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("small", payload_bytes_max=2000, result_bytes_max=1000)
async def small(request: Task, job: Job) -> Any:
    return await perform(request, job)


@app.operation("ranked", priorities=(3, 7), concurrency=1)
async def ranked(request: Task, job: Job) -> Any:
    return await perform(request, job)
