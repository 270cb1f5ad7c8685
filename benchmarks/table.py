"""The one table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rows import FOREIGN_CORES_MAX, Row
from benchmarks.wording import measured, number, ratio, spread

_COLUMNS = ("measured", "range", "p99", "CPU each", "beside", "ratio", "promised")
_WIDTH = 150


def print_table(rows: Sequence[Row], result: Mapping[str, Any]) -> None:
    """Print all rows, what they were measured on, and how many promises are not kept."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(make_table(rows, result))
    for name, words in (("machine", result["machine"]), ("versions", result["versions"])):
        console.print(f"[dim]{name}: {', '.join(f'{key} {value}' for key, value in words.items())}[/dim]")
    _print_promises(console, rows)
    for row in rows:
        if "fault" in row.extra:
            console.print(f"Not measured: {row.what}: {row.extra['fault']}", markup=False)
    if any(row.is_disturbed for row in rows):
        words = f"other programs kept more than {FOREIGN_CORES_MAX:g} of a core busy; take it again on a quiet machine"
        console.print(f"[yellow]*[/yellow] {words}.")


def _print_promises(console: Console, rows: Sequence[Row]) -> None:
    promised = [(row, row.verdict) for row in rows if row.verdict is not None]
    missed = [(row, verdict) for row, verdict in promised if not verdict.is_met]
    console.print(f"{len(promised) - len(missed)} of {len(promised)} promises kept.")
    for row, verdict in missed:
        figure = measured(row.value, row.unit) if row.ratio is None else ratio(row.ratio)
        console.print(f"  [red]missed[/red] {row.section}: {row.what}: {figure}, promised {verdict.target}")


def make_table(rows: Sequence[Row], result: Mapping[str, Any]) -> Table:
    table = Table(
        title=f"Coatcheck {result['commit']}, {result['taken_at'][:16].replace('T', ' ')} UTC", title_justify="left"
    )
    table.add_column("", overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, justify="right", overflow="fold")
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            table.add_section()
            table.add_row(f"[bold]{section}[/bold]")
        table.add_row(f"  {row.what}", *_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    if "fault" in row.extra:
        return ["not measured", *[""] * (len(_COLUMNS) - 1)]
    mark = "[yellow]*[/yellow]" if row.is_disturbed else ""
    p99 = f"{row.extra['p99_ms']:.1f} ms" if "p99_ms" in row.extra else ""
    cpu = f"{row.extra['cpu_us']:.0f} µs" if "cpu_us" in row.extra else ""
    beside = "" if row.beside is None else f"{number(row.beside)} {row.beside_name}"
    value = measured(row.value, row.unit) + mark
    return [value, spread(row.values), p99, cpu, beside, ratio(row.ratio), _promise(row)]


def _promise(row: Row) -> str:
    if row.verdict is None:
        return ""
    colour, word = ("green", "kept") if row.verdict.is_met else ("red", "missed")
    return f"{row.verdict.target} [{colour}]{word}[/{colour}]"
