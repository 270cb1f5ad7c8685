"""The merchant's one kind of work: write the export of an order. Runs in runner processes."""

import asyncpg
from pydantic import BaseModel

from coatcheck import App, ErrorCategory, File, Job, JobError
from report_jobs.forms import csv_form, json_form
from report_jobs.orders import DATABASE, Format, Order, read_order

app = App("report-jobs")


class Export(BaseModel):
    order: int
    format: Format


@app.operation("exports", path="/exports", timeout="1m", retention="30d")
async def export_order(request: Export, job: Job) -> File:
    """Write an order as CSV or JSON."""
    order = await _order(request.order)
    job.progress(0.5, message=f"Read {len(order.lines)} lines")
    match request.format:
        case "csv":
            return File(csv_form(order), "text/csv; charset=utf-8", f"order-{order.number}.csv")
        case "json":
            return File(json_form(order), "application/json", f"order-{order.number}.json")


async def _order(number: int) -> Order:
    """The order. It is there: its export was committed together with it, and not a moment before."""
    connection = await asyncpg.connect(DATABASE)
    try:
        order = await read_order(connection, number)
    finally:
        await connection.close()
    if order is None:
        raise JobError(ErrorCategory.INVALID_INPUT, f"There is no order {number}.", code="unknown-order")
    return order
