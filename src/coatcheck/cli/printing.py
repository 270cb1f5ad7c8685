"""What commands print: a table for people, lines of tab-separated values for programs, JSON where it is asked for.

Whatever a client or a handler wrote may hold control sequences that would drive the operator's terminal. None gets
through: they are shown as escapes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_SHOWN_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_NAME_WIDTH = 18
_LAST_COLUMN_WIDTH = 30
_GAP = 2


def shown(text: str) -> str:
    """The text on one line, with what drives a terminal or turns its writing round as visible escapes."""
    return _NOT_SHOWN.sub(_escape, text)


def shown_text(text: str) -> str:
    """The same of a text of several lines."""
    return _NOT_SHOWN_IN_TEXT.sub(_escape, text)


def print_json(value: Any) -> None:
    """One JSON text in ASCII, which no terminal takes for anything else."""
    typer.echo(json.dumps(value, indent=2))


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; else a line for each row, its values between tabs, and no headings.

    A terminal too narrow for the table shows each row on lines of its own: ids and times stay whole, to be copied.
    """
    console = Console(highlight=False)
    clean = [[shown(value) for value in row] for row in rows]
    if not console.is_terminal:
        for row in clean:
            typer.echo("\t".join(row))
    elif not clean:
        console.print("None.")
    elif _width(headings, clean) <= console.width:
        _print_table(console, headings, clean)
    else:
        for row in clean:
            _print_stacked(console, headings, row)


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is in which only long texts of the last column are folded."""
    widths = [max(map(cell_len, column)) + _GAP for column in zip(headings, *rows, strict=True)]
    return sum(widths[:-1]) + min(widths[-1], _LAST_COLUMN_WIDTH)


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=heading != headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _print_stacked(console: Console, headings: Sequence[str], row: Sequence[str]) -> None:
    console.print(Text(row[0], style="bold"), soft_wrap=True)
    line = ""
    for heading, value in zip(headings[1:], row[1:], strict=True):
        part = f"  {heading} {value}"
        if value in ("", "-"):
            continue
        if line and cell_len(line + part) > console.width:
            console.print(Text(line), soft_wrap=True)
            line = ""
        line += part
    console.print(Text(line), soft_wrap=True)


def print_fields(fields: Mapping[str, str | None]) -> None:
    """A line for each field that has a value."""
    width = max(_NAME_WIDTH, *(len(name) + 1 for name in fields))
    for name, value in fields.items():
        if value is not None:
            typer.echo(f"{name:<{width}}{shown(value)}")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
