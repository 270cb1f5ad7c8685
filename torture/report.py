"""Keeps the last figures of each part as JSON, and writes them as a table into the page about the torture."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from torture.outcome import Outcome

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "test" / "torture.json"
PAGE = ROOT / "docs" / "test" / "torture.md"
BEGIN, END = "<!-- last figures -->\n", "<!-- end of the last figures -->\n"

Entry: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Finished:
    """A part that has been run, how much of it, and what came of it."""

    part: str
    amount: int
    full_amount: int
    seed: int
    seconds: float
    machine: dict[str, str]
    outcome: Outcome

    def entry(self) -> Entry:
        return {
            "amount": self.amount,
            "full_amount": self.full_amount,
            "seed": self.seed,
            "seconds": round(self.seconds),
            "machine": self.machine,
            "figures": self.outcome.figures,
            "faults": self.outcome.faults[:100],
        }


def keep(finished: Finished, kept: Path = KEPT, page: Path = PAGE) -> None:
    """Put this part's figures in the place of its earlier ones, in both files."""
    entries: dict[str, Entry] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    entries[finished.part] = finished.entry()
    kept.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", "utf-8")
    text = page.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    page.write_text(head + BEGIN + table(entries) + END + rest.partition(END)[2], "utf-8")


def table(entries: dict[str, Entry]) -> str:
    """The figures as a Markdown table."""
    lines = ["", "| part | run | of | seconds | figures | faults | when and where |", "|---|---|---|---|---|---|---|"]
    for part, entry in entries.items():
        figures = "; ".join(f"{name}: {_written(value)}" for name, value in entry["figures"].items())
        machine = entry["machine"]
        where = (
            f"{machine['date']}, {machine['cores']} cores ({machine['processor']}), {machine['file system']},"
            f" Python {machine['python']}, SQLite {machine['sqlite']}, load {machine['load']} at the start"
        )
        counts = f"{entry['amount']:,} | {entry['full_amount']:,} | {entry['seconds']:,}"
        lines.append(f"| {part} | {counts} | {figures} | {len(entry['faults'])} | {where} |")
    return "\n".join(lines) + "\n\n"


def _written(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"
