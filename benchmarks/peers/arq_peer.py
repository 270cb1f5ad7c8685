"""arq on Valkey."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from fastapi import FastAPI, Request

from benchmarks.peers.request import STORE, Report


async def reports(context: dict[str, Any], request: dict[str, Any]) -> None:
    """Nothing to do."""


class WorkerSettings:
    """What `arq` runs: many jobs at once, and no waiting between polls."""

    functions = (reports,)
    redis_settings = RedisSettings.from_dsn(STORE) if STORE.startswith("redis") else RedisSettings()
    max_jobs = 200
    poll_delay = 0.01
    log_results = False


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    api.state.pool = await create_pool(WorkerSettings.redis_settings)
    yield


app = FastAPI(lifespan=_lifespan)


@app.post("/v1/reports", status_code=202)
async def accept(report: Report, request: Request) -> dict[str, str]:
    job = await request.app.state.pool.enqueue_job("reports", report.model_dump())
    return {"id": job.job_id}
