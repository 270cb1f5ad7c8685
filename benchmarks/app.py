"""The app that is measured: one operation that validates a small request and does nothing with it."""

import time
from typing import Annotated

from pydantic import BaseModel, Field

from coatcheck import App, Job

app = App("benchmarks")


class Report(BaseModel):
    """A request of ordinary size."""

    branch: Annotated[str, Field(min_length=1, max_length=64)]
    shelves: Annotated[int, Field(ge=0, le=1000)]
    tags: list[str] = []


@app.operation("reports", queue_limit=None)
async def reports(request: Report, job: Job) -> int:
    """Return the instant at which it ran, in ns since the epoch."""
    return time.time_ns()
