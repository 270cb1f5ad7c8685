"""Celery on Valkey. Acknowledged after the run, with results kept: a killed worker loses no job, as ours loses none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from celery import Celery
from fastapi import FastAPI

from benchmarks.peers.request import STORE, Report

queue = Celery("peer", broker=STORE, backend=STORE)
queue.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=64,
    broker_pool_limit=64,
    redis_max_connections=128,
    broker_connection_retry_on_startup=True,
)


@queue.task(name="reports")
def reports(request: dict[str, Any]) -> None:
    """Nothing to do."""


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = 64
    yield


app = FastAPI(lifespan=_lifespan)


# Celery's client blocks, so its calls run in threads: that lets Valkey sync for many of them at once.
@app.post("/v1/reports", status_code=202)
def accept(report: Report) -> dict[str, str]:
    return {"id": str(reports.delay(report.model_dump()).id)}
