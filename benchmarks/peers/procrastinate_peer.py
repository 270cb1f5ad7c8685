"""procrastinate on PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from procrastinate import App, PsycopgConnector

from benchmarks.peers.request import STORE, Report

queue = App(connector=PsycopgConnector(conninfo=STORE, min_size=16, max_size=16))


@queue.task(name="reports")
async def reports(request: dict[str, Any]) -> None:
    """Nothing to do."""


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with queue.open_async():
        yield


app = FastAPI(lifespan=_lifespan)


@app.post("/v1/reports", status_code=202)
async def accept(report: Report) -> dict[str, int]:
    return {"id": await reports.defer_async(request=report.model_dump())}
