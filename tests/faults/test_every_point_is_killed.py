"""No fault point without a kill: a new one in the code fails here until a test dies at it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from faults.kills import KILLS
from faults.test_kills_at_commands import POINTS
from faults.test_kills_at_inbox import PROMOTED

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "coatcheck"
HAND_OFFS = frozenset(
    {"request-read", "key-reserved", "before-commit", "committed-before-mark", "after-commit-before-response"}
    | {"claim-before-commit", "claimed-before-start", "mid-handler", "result-stored-before-commit"}
    | {"complete-after-commit", "retry-scheduled", "dead-lettered", "cancel-stored", "reap-selected", "reap-updated"}
    | {"outbox-written", "outbox-sent-before-mark", "purge-half", "tombstone-written", "redrive-half"}
    | {"response-half-sent", "migration-step", "wal-checkpoint", "inbox-promoted"}
)
"""Where work passes from one hand to the next: each has a point, whatever the code looks like."""


def test_every_fault_point_has_a_kill() -> None:
    points = {name for name, _ in _passes()}
    killed = {kill.point for kill in KILLS} | {*POINTS, PROMOTED}
    assert sorted(points - killed) == [], "no test kills a process there"
    assert sorted(killed - points) == [], "gone from the code"


def test_every_hand_off_has_a_fault_point() -> None:
    assert sorted(HAND_OFFS - {name for name, _ in _passes()}) == []


def test_every_pass_names_its_point() -> None:
    """A name that is put together at run time could not be found here."""
    assert [where for name, where in _passes() if not name] == []


def test_every_kill_is_another() -> None:
    names = [str(kill) for kill in KILLS]
    assert sorted(names) == sorted(set(names))


def _passes() -> Iterator[tuple[str, str]]:
    """Each call of a fault point in the product, with its name where that is written out."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "testing"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _called(node).endswith("fault_point"):
                first = node.args[0] if node.args else None
                name = first.value if isinstance(first, ast.Constant) else None
                yield name if isinstance(name, str) else "", f"{path.relative_to(PACKAGE)}:{node.lineno}"


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
