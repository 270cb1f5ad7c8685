"""Operations of every kind: each shape of request, result, end and policy that a document can tell of."""

import asyncio
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coatcheck import App, Backoff, File, Job, JobError

app = App("documented")


class Branch(BaseModel):
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{2,40}$")]
    shelves: Annotated[int, Field(ge=0, le=1000)] = 1
    opened: date | None = None


class ReportRequest(BaseModel):
    """A request with many ways to be wrong."""

    model_config = ConfigDict(extra="forbid")

    branches: Annotated[list[Branch], Field(min_length=1, max_length=5)]
    format: Literal["json", "csv"] = "json"
    paper: Branch | int | None = None
    weights: dict[str, float] = Field(default={}, alias="a/b~c")


class Report(BaseModel):
    branches: int
    opened: list[date | None]


@app.operation("reports", path="/shop/reports")
async def reports(request: ReportRequest, job: Job) -> Report:
    job.progress(1, 2, "half")
    return Report(branches=len(request.branches), opened=[branch.opened for branch in request.branches])


@app.operation("anything")
async def anything(request: Any, job: Job) -> Any:
    return request


@app.operation("files")
async def files(request: str, job: Job) -> File:
    return File(request.encode() + bytes(range(256)), "application/pdf", name="stock report.pdf")


@app.operation("either")
async def either(request: bool, job: Job) -> dict[str, bool] | File:
    return {"asked": request} if request else File(b"a,b\n", "text/csv; charset=utf-8")


@app.operation(
    "bounded",
    key_required=True,
    key_window="1h",
    payload_bytes_max=2000,
    result_bytes_max=1000,
    priorities=(3, 7),
    deadline="30m",
    deadline_max="1h",
    retention={"succeeded": "1h", "result": "1s"},
)
async def bounded(request: dict[str, str], job: Job) -> dict[str, str]:
    return request


@app.operation("failing", max_attempts=2, backoff=Backoff(first_s=0.05, factor=1.0, max_s=0.05))
async def failing(request: Branch, job: Job) -> None:
    raise JobError("dependency_unavailable", "The catalogue did not answer.", retryable=True, code="catalogue")


@app.operation("endless", timeout="3s", concurrency=2, max_attempts=1)
async def endless(request: int, job: Job) -> int:
    await asyncio.Event().wait()
    return request
