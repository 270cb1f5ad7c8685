"""PgQueuer on PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from fastapi import FastAPI, Request
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.peers.request import STORE, Report


async def work() -> None:
    """The worker process."""
    async with asyncpg.create_pool(STORE, min_size=4, max_size=8) as pool:
        queue = PgQueuer.from_asyncpg_pool(pool)

        @queue.entrypoint("reports")
        async def reports(job: Job) -> None:
            """Nothing to do."""

        await queue.run(batch_size=100)


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(STORE, min_size=16, max_size=16) as pool:
        api.state.queries = Queries(AsyncpgPoolDriver(pool))
        yield


app = FastAPI(lifespan=_lifespan)


@app.post("/v1/reports", status_code=202)
async def accept(report: Report, request: Request) -> dict[str, str]:
    ids = await request.app.state.queries.enqueue("reports", report.model_dump_json().encode())
    return {"id": str(ids[0])}


if __name__ == "__main__":
    uvloop.run(work())
