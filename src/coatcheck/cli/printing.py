"""What commands print: a table for people, lines of tab-separated values for programs, JSON where it is asked for.

Whatever a client or a handler wrote may hold control sequences that would drive the operator's terminal. None gets
through: they are shown as escapes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_SHOWN_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_NAME_WIDTH = 18


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
    """A table on a terminal; else a line for each row, its values between tabs, and no headings."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(shown(value) for value in row))
        return
    table = Table(*headings, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for row in rows:
        table.add_row(*(Text(shown(value), overflow="fold") for value in row))
    console.print(table)


def print_fields(fields: Mapping[str, str | None]) -> None:
    """A line for each field that has a value."""
    width = max(_NAME_WIDTH, *(len(name) + 1 for name in fields))
    for name, value in fields.items():
        if value is not None:
            typer.echo(f"{name:<{width}}{shown(value)}")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
