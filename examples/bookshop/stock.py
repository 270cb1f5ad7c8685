"""What the shop knows: its branches, its titles, and how many copies of each stand where."""

import asyncio
import csv
import functools
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

DATA = Path(__file__).with_name("data")
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Branch:
    slug: str
    name: str
    counted_on: date


@dataclass(frozen=True, slots=True)
class Title:
    id: str
    title: str
    author: str
    year: int
    genre: str
    shelf: str


@dataclass(frozen=True, slots=True)
class StockLine:
    """The copies of one title at one branch. At or below `reorder_level`, new ones should be ordered."""

    title: Title
    units: int
    reorder_level: int

    @property
    def is_low(self) -> bool:
        return self.units <= self.reorder_level


@dataclass(frozen=True, slots=True)
class Shop:
    branches: Mapping[str, Branch]
    stock: Mapping[str, tuple[StockLine, ...]]


@functools.cache
def open_shop() -> Shop:
    """Read the shop's files, once in each process."""
    branches = {row["slug"]: _branch(row) for row in read_rows("branches.csv")}
    titles = {row["id"]: _title(row) for row in read_rows("titles.csv")}
    stock: dict[str, list[StockLine]] = {slug: [] for slug in branches}
    for row in read_rows("stock.csv"):
        line = StockLine(titles[row["title"]], int(row["units"]), int(row["reorder_level"]))
        stock[row["branch"]].append(line)
    return Shop(branches, {slug: tuple(lines) for slug, lines in stock.items()})


def read_rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of one of the shop's files, by column."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


async def read_pages(lines: tuple[StockLine, ...]) -> AsyncIterator[tuple[StockLine, ...]]:
    """Hand out stock lines as the shop's till does: a page at a time, and in no hurry.

    The pause before each page is BOOKSHOP_TILL_PAUSE seconds, 0.15 by default.
    """
    pause_s = float(os.environ.get("BOOKSHOP_TILL_PAUSE", "0.15"))
    for start in range(0, len(lines), PAGE_SIZE):
        await asyncio.sleep(pause_s)
        yield lines[start : start + PAGE_SIZE]


def _branch(row: dict[str, str]) -> Branch:
    return Branch(row["slug"], row["name"], date.fromisoformat(row["counted_on"]))


def _title(row: dict[str, str]) -> Title:
    return Title(row["id"], row["title"], row["author"], int(row["year"]), row["genre"], row["shelf"])
