"""The bookshop's two kinds of work: report on the stock of a branch, and reorder what it is short of."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from bookshop.csv_form import csv_form
from bookshop.pdf_form import pdf_form
from bookshop.stock import Shop, StockLine, open_shop, read_pages
from bookshop.summary import StockSummary, Tally
from bookshop.supplier import Supplier, copies_to_order
from coatcheck import App, BlockingJob, ErrorCategory, File, Job, JobError

app = App("bookshop")

BranchSlug = Annotated[str, Field(pattern=r"^[a-z0-9-]{2,40}$", examples=["hamburg-altona"])]


class StockReport(BaseModel):
    branch: BranchSlug
    format: Literal["json", "csv", "pdf"] = "json"


class Reorder(BaseModel):
    branch: BranchSlug


class OrderPlaced(BaseModel):
    branch: str
    order_number: str
    titles: int
    copies: int


@app.operation("reports", path="/reports", max_attempts=5, timeout="2m", retention="7d")
async def stock_report(request: StockReport, job: Job) -> StockSummary | File:
    """Report on the stock of a branch, as JSON, CSV or PDF."""
    shop = await asyncio.to_thread(open_shop)
    lines = _lines_of(shop, request.branch)
    tally, counted = Tally(shop.branches[request.branch]), 0
    async for page in read_pages(lines):
        tally.add(page)
        counted += len(page)
        job.progress(counted, len(lines), f"Counted {counted} of {len(lines)} titles")
    summary = tally.summary()
    name = f"stock-{request.branch}.{request.format}"
    match request.format:
        case "json":
            return summary
        case "csv":
            return File(csv_form(lines), "text/csv; charset=utf-8", name)
        case "pdf":
            return File(await asyncio.to_thread(pdf_form, summary), "application/pdf", name)


@app.operation("reorders", path="/reorders", timeout="30s", key_required=True)
def reorder(request: Reorder, job: BlockingJob) -> OrderPlaced:
    """Order what a branch is short of at the supplier, once."""
    lines = [line for line in _lines_of(open_shop(), request.branch) if line.is_low]
    supplier = Supplier(Path(os.environ.get("BOOKSHOP_ORDERS", "bookshop-orders")))
    key = job.effect_key("supplier-order")
    number = job.effect("supplier-order", lambda: supplier.order(key, lines))
    copies = sum(copies_to_order(line) for line in lines)
    return OrderPlaced(branch=request.branch, order_number=number, titles=len(lines), copies=copies)


def _lines_of(shop: Shop, branch: str) -> tuple[StockLine, ...]:
    if branch not in shop.branches:
        known = ", ".join(shop.branches)
        raise JobError(
            ErrorCategory.INVALID_INPUT,
            f"There is no branch {branch!r}; the branches are {known}.",
            code="unknown-branch",
        )
    return shop.stock[branch]
