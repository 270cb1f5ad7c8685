"""The stock report: what it says, and how it is counted up page by page."""

from collections.abc import Iterable
from datetime import date

from pydantic import BaseModel

from bookshop.stock import Branch, StockLine


class GenreFigures(BaseModel):
    genre: str
    titles: int
    units: int
    low_stock: int


class LowStock(BaseModel):
    """A title whose copies are at or below its reorder level."""

    title_id: str
    title: str
    author: str
    shelf: str
    units: int
    reorder_level: int


class StockSummary(BaseModel):
    """What a branch holds on the day it was counted."""

    branch: str
    branch_name: str
    counted_on: date
    titles: int
    units: int
    low_stock_titles: int
    out_of_stock_titles: int
    genres: list[GenreFigures]
    low_stock: list[LowStock]


class Tally:
    """Counts up the stock of one branch."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch
        self._genres: dict[str, GenreFigures] = {}
        self._low: list[LowStock] = []

    def add(self, lines: Iterable[StockLine]) -> None:
        for line in lines:
            self._add_to_genre(line)
            if line.is_low:
                self._low.append(_low_stock(line))

    def summary(self) -> StockSummary:
        """The report on everything added so far, the scarcest titles first."""
        genres = list(self._genres.values())
        return StockSummary(
            branch=self._branch.slug,
            branch_name=self._branch.name,
            counted_on=self._branch.counted_on,
            titles=sum(figures.titles for figures in genres),
            units=sum(figures.units for figures in genres),
            low_stock_titles=len(self._low),
            out_of_stock_titles=sum(low.units == 0 for low in self._low),
            genres=genres,
            low_stock=sorted(self._low, key=_scarcity),
        )

    def _add_to_genre(self, line: StockLine) -> None:
        genre = line.title.genre
        figures = self._genres.setdefault(genre, GenreFigures(genre=genre, titles=0, units=0, low_stock=0))
        figures.titles += 1
        figures.units += line.units
        figures.low_stock += line.is_low


def _low_stock(line: StockLine) -> LowStock:
    return LowStock(
        title_id=line.title.id,
        title=line.title.title,
        author=line.title.author,
        shelf=line.title.shelf,
        units=line.units,
        reorder_level=line.reorder_level,
    )


def _scarcity(low: LowStock) -> tuple[int, int, str]:
    return low.units, -low.reorder_level, low.title_id
