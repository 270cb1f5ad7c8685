"""How the demo looks on a terminal, and as plain lines where there is none."""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from bookshop.summary import StockSummary

SHOWN_FIELDS = ("id", "operation", "status", "done", "max_attempts", "created_at", "status_url", "result_url")
SHOWN_LOW_STOCK = 6
LOG_LINES_MAX = 15


class Screen:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps = 0

    def head(self, title: str, why: str = "") -> None:
        """Begin the next step of the story."""
        self._steps += 1
        self._console.print(f"\n[bold cyan]{self._steps}  {title}[/]")
        if why:
            self._console.print(f"   [dim]{why}[/]", soft_wrap=True)

    def say(self, text: str) -> None:
        self._console.print(f"\n   {text}", soft_wrap=True)

    def show_request(self, method: str, path: str, headers: dict[str, str], body: dict[str, str] | None = None) -> None:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._show_message([*lines, "", json.dumps(body)] if body else lines)

    def show_answer(self, answer: httpx.Response, only: Collection[str] = ()) -> None:
        """Show an answer with its headers and the job in it; or only some of its headers."""
        headers = [(name.decode(), value.decode()) for name, value in answer.headers.raw]
        shown = [f"{name}: {value}" for name, value in headers if not only or name.lower() in only]
        lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}", *shown]
        if not only:
            job = {name: value for name, value in answer.json().items() if name in SHOWN_FIELDS}
            lines += ["", json.dumps(job, indent=2)]
        self._show_message(lines)

    @contextlib.contextmanager
    def progress(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """A progress bar on a terminal, elsewhere a line for each step. It gives what to call with each version."""
        if not self._console.is_terminal:
            self._console.print()
            yield self._print_progress
            return
        columns = (TextColumn("   {task.fields[status]:<9}"), BarColumn(32), TaskProgressColumn(), TimeElapsedColumn())
        self._console.print()
        with Progress(*columns, TextColumn("[dim]{task.description}"), console=self._console) as bar:
            task = bar.add_task("", total=1.0, status="queued")

            def show(job: dict[str, Any]) -> None:
                bar.update(task, completed=_fraction(job), description=_message(job), status=job["status"])

            yield show

    def show_summary(self, summary: StockSummary) -> None:
        """The figures of a stock report and its scarcest titles."""
        figures = Table.grid(padding=(0, 3))
        figures.add_row("Titles", "Units", "To reorder", "Out of stock", style="dim")
        counts = (summary.titles, summary.units, summary.low_stock_titles, summary.out_of_stock_titles)
        figures.add_row(*(f"{count:,}" for count in counts), style="bold")
        self._show(f"[bold]{summary.branch_name}[/], counted on {summary.counted_on:%d %B %Y}")
        self._show(figures)
        titles = Table("Scarcest titles", "Author", "Shelf", box=None, header_style="dim", pad_edge=False)
        titles.add_column("Units", justify="right")
        titles.add_column("Reorder at", justify="right")
        for low in summary.low_stock[:SHOWN_LOW_STOCK]:
            titles.add_row(low.title, low.author, low.shelf, str(low.units), str(low.reorder_level))
        self._show(titles)

    def show_failure(self, sentence: str, log: str) -> None:
        """Why the demo stops, and the last that the server said."""
        self._console.print(f"\n[bold red]The demo failed.[/] {escape(sentence)}", soft_wrap=True)
        last = log.splitlines()[-LOG_LINES_MAX:]
        if last:
            words = [f"  {escape(line)}" for line in last]
            self._console.print("\nThe server's last words:", *words, sep="\n", style="dim", soft_wrap=True)

    def _print_progress(self, job: dict[str, Any]) -> None:
        self._console.print(f"   {job['status']:<9} {_fraction(job):>4.0%}  {escape(_message(job))}".rstrip())

    def _show_message(self, lines: list[str]) -> None:
        self._show(Syntax("\n".join(lines), "http", theme="ansi_dark", background_color="default", word_wrap=True))

    def _show(self, what: Any) -> None:
        self._console.print(Padding(what, (1, 0, 0, 3), expand=False))


def _fraction(job: dict[str, Any]) -> float:
    if job["status"] == "succeeded":
        return 1.0
    return (job["progress"] or {}).get("fraction") or 0.0


def _message(job: dict[str, Any]) -> str:
    return (job["progress"] or {}).get("message") or ""
