"""The project's own Python files, parsed once, and how a rule names the lines that break it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "coatcheck"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    def at(self, line: int, what: str) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}: {what}"

    def functions(self) -> Iterator[FunctionNode]:
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode):
                yield node

    def classes(self) -> Iterator[ast.ClassDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                yield node


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the project."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert paths, f"no Python files below {folders}"
    texts = {path: path.read_text("utf-8") for path in paths}
    return tuple(Source(path, text, ast.parse(text, str(path))) for path, text in texts.items())


def refuse(faults: list[str]) -> None:
    """Fail with every broken rule at once, each with its file and line."""
    assert not faults, "\n" + "\n".join(faults)
