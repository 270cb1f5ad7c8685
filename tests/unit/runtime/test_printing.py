"""What commands print for people: whole ids and times to copy, at any width."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from coatcheck.cli import printing

HEADINGS = ("id", "created", "status", "error")
ROWS = [
    ("job_" + "1" * 28, "2026-01-05T08:00:00.000Z", "failed", "timeout: It took too long."),
    ("job_2", "-", "", "x"),
]


def drawn(monkeypatch: pytest.MonkeyPatch, width: int, rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines on a terminal of this width."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system=None, width=width)
    monkeypatch.setattr(printing, "Console", lambda **_: console)
    printing.print_rows(HEADINGS, rows)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_wide_terminal_has_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, 110, ROWS)
    assert lines[0].split() == list(HEADINGS)
    assert lines[1].split(maxsplit=3) == list(ROWS[0])
    assert len(lines) == 3


def test_only_the_last_column_of_a_table_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, 110, [(*ROWS[0][:3], "long " * 20)])
    assert all(value in lines[1] for value in ROWS[0][:3])
    assert {line.strip(" ") != "" and set(line.split()) <= {"long"} for line in lines[2:]} == {True}


def test_a_narrow_terminal_has_lines_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, 60, ROWS) == [
        ROWS[0][0],
        "  created 2026-01-05T08:00:00.000Z  status failed",
        "  error timeout: It took too long.",
        "job_2",
        "  error x",
    ]


def test_an_empty_list_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, 80, []) == ["None."]
