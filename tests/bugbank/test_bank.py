"""The bank is whole: each row has a test or a reason, no reason has gone, and the page says what is."""

import re

import pytest

from .bank import PAGE, PARTS, Covered, Row, cover, read_rows, render

ROW_COUNT = 100


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows()


def test_there_are_as_many_rows_as_were_collected(rows: list[Row]) -> None:
    ids = [row.id for row in rows]
    assert len(set(ids)) == len(ids) == ROW_COUNT
    assert all(re.fullmatch(r"BB-[0-9]{3}", one) for one in ids)
    assert all(row.title and row.group.isupper() for row in rows)


def test_nothing_waits_for_a_part_that_is_there(rows: list[Row]) -> None:
    waiting = {row.id: row.later or row.rest for row in rows if row.later or row.rest}
    assert set(waiting.values()) <= PARTS.keys()
    over = [f"{row} ({part})" for row, part in waiting.items() if part is not None and PARTS[part]]
    assert not over, f"the part they wait for is there, so test them: {over}"
    assert [row.id for row in rows if bool(row.later or row.rest) is not bool(row.why)] == []


def test_each_row_has_a_test_of_its_number_or_waits_for_a_part_and_the_page_is_fresh(rows: list[Row]) -> None:
    bank = cover(rows)
    untested = [covered.row.id for covered in bank if covered.row.later is None and not _has_own(covered)]
    assert not untested, f"no test, and no part they wait for: {untested}"
    both = [covered.row.id for covered in bank if covered.row.later is not None and covered.tests]
    assert not both, f"tested, and yet said to wait: {both}"
    assert PAGE.read_text("utf-8") == render(bank), "run `python tests/bugbank/bank.py`"


def _has_own(covered: Covered) -> bool:
    return any(re.search(rf"bb_?{covered.row.id[3:]}(?![0-9])", test) for test in covered.tests)
