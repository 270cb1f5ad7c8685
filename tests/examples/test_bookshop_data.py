"""The data that ships with the bookshop: real titles long out of copyright, counted at each branch."""

import csv
import re
from collections import Counter
from collections.abc import Hashable, Iterable

from bookshop.make_stock import stock_csv
from bookshop.stock import DATA, open_shop, read_rows

BRANCHES = {"hamburg-altona", "berlin-kreuzberg", "koeln-ehrenfeld", "muenchen-haidhausen", "leipzig-suedvorstadt"}


def test_there_are_at_least_500_titles_and_none_twice() -> None:
    titles = list(read_rows("titles.csv"))
    assert len(titles) >= 500
    assert _repeated(row["id"] for row in titles) == []
    assert _repeated((row["title"].casefold(), row["author"].casefold()) for row in titles) == []


def test_each_title_appeared_before_1929() -> None:
    assert [row["title"] for row in read_rows("titles.csv") if not 1450 < int(row["year"]) < 1929] == []


def test_each_title_has_author_genre_and_a_shelf_of_that_genre() -> None:
    genre_of_letter: dict[str, str] = {}
    for row in read_rows("titles.csv"):
        assert row["title"].strip() == row["title"] != ""
        assert row["author"].strip() == row["author"] != ""
        assert re.fullmatch(r"[A-Z][1-9][0-9]?", row["shelf"]), row
        assert genre_of_letter.setdefault(row["shelf"][0], row["genre"]) == row["genre"]
    assert len(set(genre_of_letter.values())) == len(genre_of_letter)


def test_there_are_five_branches_with_slugs_that_requests_may_carry() -> None:
    assert set(open_shop().branches) == BRANCHES
    assert all(re.fullmatch(r"[a-z0-9-]{2,40}", slug) for slug in BRANCHES)


def test_each_branch_has_counted_each_title_once() -> None:
    titles = sorted(row["id"] for row in read_rows("titles.csv"))
    shop = open_shop()
    for slug in BRANCHES:
        assert sorted(line.title.id for line in shop.stock[slug]) == titles
        assert all(line.units >= 0 and line.reorder_level >= 1 for line in shop.stock[slug])


def test_a_branch_is_short_of_some_titles_and_of_few() -> None:
    for lines in open_shop().stock.values():
        assert 0.05 < sum(line.is_low for line in lines) / len(lines) < 0.2
        assert any(line.units == 0 for line in lines)


def test_the_script_makes_the_stock_that_ships() -> None:
    assert (DATA / "stock.csv").read_text(encoding="utf-8") == stock_csv()


def test_every_file_is_plain_utf8_with_unix_line_ends() -> None:
    for path in DATA.glob("*.csv"):
        content = path.read_bytes()
        assert b"\r" not in content
        assert content.endswith(b"\n")
        assert len({len(row) for row in csv.reader(content.decode("utf-8").splitlines())}) == 1


def _repeated(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, count in Counter(values).items() if count > 1]
