"""DBOS, on SQLite or PostgreSQL: workflows enqueued by a client in the API, run by another process."""

import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from dbos import DBOS, DBOSClient, DBOSConfig
from fastapi import FastAPI, Request

from benchmarks.peers.request import STORE, Report

QUEUE = "reports"


@DBOS.workflow(name="reports")
def reports(request: dict[str, Any]) -> None:
    """Nothing to do."""


def work() -> None:
    """The worker process. With "setup" as its argument, it only makes the tables and the queue."""
    config: DBOSConfig = {
        "name": "peer",
        "system_database_url": STORE,
        "run_admin_server": False,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=0.1)
    if sys.argv[1:] == ["setup"]:
        DBOS.destroy()
    else:
        threading.Event().wait()


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = 64
    api.state.client = DBOSClient(system_database_url=STORE)
    yield
    api.state.client.destroy()


app = FastAPI(lifespan=_lifespan)


# The client blocks (its async form uses threads as well), so the endpoint runs in threads.
@app.post("/v1/reports", status_code=202)
def accept(report: Report, request: Request) -> dict[str, str]:
    handle = request.app.state.client.enqueue({"workflow_name": "reports", "queue_name": QUEUE}, report.model_dump())
    return {"id": str(handle.workflow_id)}


if __name__ == "__main__":
    work()
