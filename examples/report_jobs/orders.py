"""What the merchant keeps: articles in stock, and orders with their lines. Knows nothing of jobs but their ids."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import asyncpg
from pydantic import BaseModel, Field

TABLES = Path(__file__).with_name("tables.sql")
DATABASE = os.environ.get("REPORT_JOBS_DATABASE", "postgresql://localhost/report_jobs")

Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
Format = Literal["csv", "json"]


class OrderRefused(Exception):
    """The order cannot be filled; the message says why in one sentence."""


class Line(BaseModel):
    sku: Annotated[str, Field(examples=["pea-sweet"])]
    packets: Annotated[int, Field(gt=0, le=100_000)]


class NewOrder(BaseModel):
    buyer: Annotated[str, Field(min_length=1, max_length=200)]
    lines: Annotated[list[Line], Field(min_length=1, max_length=500)]
    export: Format = "csv"


@dataclass(frozen=True, slots=True)
class OrderedLine:
    sku: str
    name: str
    packets: int
    price_cents: int

    @property
    def total_cents(self) -> int:
        return self.packets * self.price_cents


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    buyer: str
    export_job: str | None
    lines: tuple[OrderedLine, ...]

    @property
    def total_cents(self) -> int:
        return sum(line.total_cents for line in self.lines)


async def make_tables(connection: Connection) -> None:
    """Make what is not there yet."""
    await connection.execute(TABLES.read_text("utf-8"))


async def write_order(connection: Connection, order: NewOrder) -> int:
    """Write the order and its lines; returns its number."""
    number: int = await connection.fetchval("INSERT INTO purchase (buyer) VALUES ($1) RETURNING number", order.buyer)
    try:
        await connection.executemany(
            "INSERT INTO purchase_line (number, sku, packets) VALUES ($1, $2, $3)",
            [(number, line.sku, line.packets) for line in order.lines],
        )
    except asyncpg.ForeignKeyViolationError as error:
        raise OrderRefused("There is no such article.") from error
    except asyncpg.UniqueViolationError as error:
        raise OrderRefused("An article stands on two lines.") from error
    return number


async def note_export(connection: Connection, number: int, job_id: str) -> None:
    """Keep which job exports the order."""
    await connection.execute("UPDATE purchase SET export_job = $2 WHERE number = $1", number, job_id)


async def take_from_stock(connection: Connection, order: NewOrder) -> None:
    """Take what was ordered out of stock."""
    # In one order of the articles, so that two orders never wait for each other.
    for line in sorted(order.lines, key=lambda line: line.sku):
        try:
            await connection.execute("UPDATE article SET packets = packets - $2 WHERE sku = $1", line.sku, line.packets)
        except asyncpg.CheckViolationError as error:
            raise OrderRefused(f"There are not {line.packets} packets of {line.sku} in stock.") from error


async def read_order(connection: Connection, number: int) -> Order | None:
    """The order with its lines, or None."""
    head = await connection.fetchrow("SELECT buyer, export_job FROM purchase WHERE number = $1", number)
    if head is None:
        return None
    rows = await connection.fetch(
        "SELECT l.sku, a.name, l.packets, a.price_cents FROM purchase_line AS l JOIN article AS a ON a.sku = l.sku"
        " WHERE l.number = $1 ORDER BY l.sku",
        number,
    )
    return Order(number, head["buyer"], head["export_job"], tuple(OrderedLine(*row) for row in rows))
