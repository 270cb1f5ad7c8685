"""The merchant's site: a FastAPI application with tables of its own, and the jobs of its orders mounted below it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from coatcheck import Service, Settings
from report_jobs.exports import Export, app
from report_jobs.orders import (
    DATABASE,
    NewOrder,
    OrderRefused,
    make_tables,
    note_export,
    read_order,
    take_from_stock,
    write_order,
)

JOBS = "/jobs"

service = Service(app, Settings(store=DATABASE, log_level="warning"))


class PlacedOrder(BaseModel):
    number: int
    buyer: str
    total_cents: int
    export_url: str


@asynccontextmanager
async def lifespan(site: FastAPI) -> AsyncIterator[None]:
    """Open the database, and start the service's share of the work."""
    async with asyncpg.create_pool(DATABASE, min_size=1, max_size=10) as pool, service.lifespan():
        async with pool.acquire() as connection:
            await make_tables(connection)
        site.state.pool = pool
        yield


site = FastAPI(title="Thistle & Rue, seed merchants", lifespan=lifespan)


@site.post("/orders", status_code=201)
async def place_order(order: NewOrder) -> PlacedOrder:
    """Take an order. The order, the stock it takes and the job of its export commit together, or none of them does."""
    try:
        async with site.state.pool.acquire() as connection, connection.transaction():
            number = await write_order(connection, order)
            work = Export(order=number, format=order.export)
            job = await service.submit("exports", work, connection=connection)
            await note_export(connection, number, job.id)
            # Last, since others who order the same wait from here to the commit.
            await take_from_stock(connection, order)
    except OrderRefused as refusal:
        raise HTTPException(409, str(refusal)) from refusal
    return await show_order(number)


@site.get("/orders/{number}")
async def show_order(number: int) -> PlacedOrder:
    """An order, and where its export is."""
    async with site.state.pool.acquire() as connection:
        order = await read_order(connection, number)
    if order is None:
        raise HTTPException(404, f"There is no order {number}.")
    return PlacedOrder(
        number=order.number,
        buyer=order.buyer,
        total_cents=order.total_cents,
        export_url=f"{JOBS}/exports/{order.export_job}",
    )


# What the service has of its own: status, progress, cancel and the exports themselves.
site.mount(JOBS, service.asgi())
