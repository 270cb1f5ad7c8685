"""Makes data/stock.csv from the titles and branches: the same figures on every machine.

Run it after changing titles or branches: `PYTHONPATH=examples python -m bookshop.make_stock`.
"""

import csv
import hashlib
import io
from collections.abc import Iterator

from bookshop.stock import DATA, read_rows

LOW_SHARE = 0.11


def stock_csv() -> str:
    """The whole file: one line for each title at each branch."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("branch", "title", "units", "reorder_level"))
    writer.writerows(_rows())
    return text.getvalue()


def _rows() -> Iterator[tuple[str, str, int, int]]:
    titles = [row["id"] for row in read_rows("titles.csv")]
    for branch in read_rows("branches.csv"):
        for title in titles:
            yield branch["slug"], title, *_figures(branch["slug"], float(branch["size"]), title)


def _figures(branch: str, size: float, title: str) -> tuple[int, int]:
    """Units and reorder level: few titles sell a lot, most sell a little, some are nearly gone."""
    demand = size * (0.75 * _chance("demand", title) ** 4 + 0.25 * _chance("taste", branch, title) ** 2)
    reorder_level = 1 + round(9 * demand)
    if _chance("sold", branch, title) < LOW_SHARE:
        return int((reorder_level + 1) * _chance("left", branch, title)), reorder_level
    return reorder_level + 1 + int((2 + 1.8 * reorder_level) * _chance("spare", branch, title)), reorder_level


def _chance(*what: str) -> float:
    """A number from 0 up to 1 that depends on nothing but its name."""
    return int.from_bytes(hashlib.blake2b("/".join(what).encode(), digest_size=6).digest()) / 2**48


if __name__ == "__main__":
    (DATA / "stock.csv").write_text(stock_csv(), encoding="utf-8")
