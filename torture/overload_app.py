"""What is flooded: work of half a second, of which so much can be done at once and no more."""

import asyncio
from typing import Any

from coatcheck import App, Job

RUN_S = 0.5
AT_ONCE = 10
CAPACITY_PER_S = AT_ONCE / RUN_S
QUEUE_LIMIT_S = 5

app = App("overload")


@app.operation("work", queue_limit=QUEUE_LIMIT_S, concurrency=AT_ONCE, retention="1m")
async def work(request: dict[str, Any], job: Job) -> None:
    """Take half a second."""
    await asyncio.sleep(RUN_S)
