"""The fault points of the product, as its code names them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "coatcheck"
ENGINES = PACKAGE / "stores"


def passes(folder: Path = PACKAGE) -> Iterator[tuple[str, str]]:
    """Each call of a fault point below this folder, with its name where that is written out, and where it stands."""
    for path in sorted(folder.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "testing"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _called(node).endswith("fault_point"):
                first = node.args[0] if node.args else None
                name = first.value if isinstance(first, ast.Constant) else None
                yield name if isinstance(name, str) else "", f"{path.relative_to(PACKAGE)}:{node.lineno}"


@cache
def points_of_engine(engine: str) -> frozenset[str]:
    """The points that an engine passes itself."""
    return frozenset(name for name, _ in passes(ENGINES / engine))


@cache
def points_of_all() -> frozenset[str]:
    """The points that are passed whatever the engine is."""
    return frozenset(name for name, where in passes() if not where.startswith(f"{ENGINES.name}/"))


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
