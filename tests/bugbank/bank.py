"""The bug bank: which tests cover which row, and the page that says so.

`.venv/bin/python tests/bugbank/bank.py` writes docs/test/bugbank.md anew.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coatcheck.core.problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "coatcheck"
ROWS = Path(__file__).with_name("rows.toml")
PAGE = ROOT / "docs" / "test" / "bugbank.md"

_NUMBER = re.compile(r"bb_?([0-9]{3})(?![0-9])")

PARTS = {
    "webhooks": any("webhook" in path.name for path in PACKAGE.rglob("*") if path.is_dir()),
    "tenants and limits": bool({"unauthenticated", "rate-limited"} & PROBLEMS.keys()),
    "PostgreSQL": (PACKAGE / "stores" / "postgres").exists(),
    "AWS": (PACKAGE / "aws").exists(),
    "uploads": (PACKAGE / "blobs").exists(),
    "console": (PACKAGE / "console").exists(),
}
"""The parts a row may wait for, and whether each is there."""

_HEAD = """\
# The bug bank

Job queues and asynchronous APIs have had faults that their users reported in public. We collected a hundred of them and
turned each into a check against this project: do what broke the others, and see that it breaks nothing here. The page
is written from the tests (`.venv/bin/python tests/bugbank/bank.py`), and a test fails when a row has neither a test nor
a reason, when the reason has gone, or when this page is stale.

The counts are small enough for every day; `BUGBANK_FULL=1` runs those of the bank itself:

    BUGBANK_FULL=1 .venv/bin/python -m pytest --timeout=0 tests/bugbank
"""


@dataclass(frozen=True)
class Row:
    """One fault. `later`: the part before which nothing can be tested; `rest`: the part that brings more to test."""

    id: str
    group: str
    title: str
    also: tuple[str, ...]
    later: str | None
    rest: str | None
    why: str | None


@dataclass(frozen=True)
class Covered:
    """A row with its tests: their node ids from the root, without parameters."""

    row: Row
    tests: tuple[str, ...]


def read_rows() -> list[Row]:
    """All rows, in the order of their numbers."""
    rows = [_row(**given) for given in tomllib.loads(ROWS.read_text("utf-8"))["row"]]
    return sorted(rows, key=lambda row: row.id)


def _row(**given: Any) -> Row:
    optional = {name: given.pop(name, None) for name in ("later", "rest", "why")}
    return Row(
        given.pop("id"), given.pop("class"), given.pop("title"), tuple(given.pop("also", ())), **optional, **given
    )


def collected_tests(rows: Iterable[Row]) -> set[str]:
    """Every test that pytest finds in the files that have to do with the bank.

    Raises:
        RuntimeError: a file cannot be collected, or a test that a row names is not there.
    """
    named = {ROOT / node.partition("::")[0] for row in rows for node in row.also}
    files = {path for path in TESTS.rglob("test_*.py") if _NUMBER.search(path.read_text("utf-8"))} | named
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    found = subprocess.run(
        [*command, *map(str, sorted(files))], cwd=ROOT, env=outer, capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        raise RuntimeError(found.stdout[-4000:] + found.stderr[-4000:])
    return {line.partition("[")[0] for line in found.stdout.splitlines() if "::" in line}


def cover(rows: Sequence[Row]) -> list[Covered]:
    """Each row with the tests whose names hold its number, and those it names."""
    tests = collected_tests(rows)
    missing = {node for row in rows for node in row.also} - tests
    if missing:
        raise RuntimeError(f"rows name tests that are not there: {sorted(missing)}")
    by_number: dict[str, list[str]] = {}
    for test in sorted(tests):
        for number in _NUMBER.findall(test.rpartition("::")[2]):
            by_number.setdefault(f"BB-{number}", []).append(test)
    unknown = by_number.keys() - {row.id for row in rows}
    if unknown:
        raise RuntimeError(f"tests name rows that are not there: {sorted(unknown)}")
    return [Covered(row, (*by_number.get(row.id, ()), *row.also)) for row in rows]


def state_of(row: Row) -> str:
    """What is tested of a row today."""
    if row.later is not None:
        return f"not yet, comes with {row.later}: {row.why}"
    if row.rest is not None:
        return f"tested, and more with {row.rest}: {row.why}"
    return "tested"


def render(bank: Sequence[Covered]) -> str:
    """The page."""
    waiting = Counter(covered.row.later for covered in bank if covered.row.later)
    parts = ", ".join(f"{count} for {part}" for part, count in waiting.most_common())
    summary = f"{len(bank) - waiting.total()} of {len(bank)} rows are tested. {waiting.total()} wait: {parts}."
    head = ["| row | class | what went wrong elsewhere | tests | state |", "|---|---|---|---|---|"]
    return "\n".join([_HEAD, summary, "", *head, *(_line(covered) for covered in bank), ""])


def _line(covered: Covered) -> str:
    row = covered.row
    tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in covered.tests) or "none"
    return f"| {row.id} | {row.group} | {row.title} | {tests} | {state_of(row)} |"


def main() -> None:
    PAGE.write_text(render(cover(read_rows())), "utf-8")


if __name__ == "__main__":
    main()
