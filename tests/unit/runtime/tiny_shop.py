"""A small app that runner processes can import."""

import asyncio
import contextlib

from pydantic import BaseModel

from coatcheck.app import App
from coatcheck.execution.job import Job

app = App("tiny-shop")


class Order(BaseModel):
    title: str
    seconds: float = 0.0


@app.operation("orders", path="/orders")
async def order(request: Order, job: Job) -> Order:
    """Takes its time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(request.seconds):
            await asyncio.Event().wait()
    return request
