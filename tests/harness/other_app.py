"""An app of another name than the one most tests serve."""

from typing import Any

from coatcheck import App, Job

app = App("other")


@app.operation("anything")
async def anything(request: Any, job: Job) -> Any:
    return request
