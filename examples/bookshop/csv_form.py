"""The stock of a branch as CSV, one line for each title."""

import csv
import io
from collections.abc import Iterable

from bookshop.stock import StockLine

COLUMNS = ("title_id", "title", "author", "year", "genre", "shelf", "units", "reorder_level", "low_stock")


def csv_form(lines: Iterable[StockLine]) -> bytes:
    """UTF-8, with a header line, as RFC 4180 has it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(_row(line) for line in lines)
    return text.getvalue().encode()


def _row(line: StockLine) -> tuple[str | int, ...]:
    title = line.title
    low = "yes" if line.is_low else "no"
    return (
        title.id, title.title, title.author, title.year, title.genre, title.shelf, line.units, line.reorder_level, low
    )  # fmt: skip
