"""What a claim on SQLite looks at behind a crowd of tenants who may start nothing: what it looks at behind nobody."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from coatcheck.stores.sqlite import store as store_module
from coatcheck.stores.sqlite.connection import open_writer
from coatcheck.testing.conformance.start_limits import CROWD, a_crowd_held, end
from coatcheck.testing.conformance.world import World
from harness.sqlite_factory import SqliteFactory


class Steps:
    """Counts the steps of SQLite's own machine: each row that is looked at takes some."""

    def __init__(self) -> None:
        self._total = 0
        self._so_far: dict[str, int] = {}

    def watched(self, path: Path) -> apsw.Connection:
        """A connection with an eye on it."""
        connection = open_writer(path)
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note)
        return connection

    def take(self) -> int:
        """How many since the last time."""
        total, self._total = self._total, 0
        return total

    def _note(self, profile: dict[str, Any]) -> None:
        # A statement that is used again goes on counting, unless it was put away in between.
        statement, status = profile["sql"], profile["stmt_status"]
        steps = status["SQLITE_STMTSTATUS_VM_STEP"]
        self._total += steps - (self._so_far.get(statement, 0) if status["SQLITE_STMTSTATUS_RUN"] > 1 else 0)
        self._so_far[statement] = steps


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counted = Steps()
    monkeypatch.setattr(store_module, "open_writer", counted.watched)
    return counted


async def steps_of_a_claim(path: Path, crowd: int, steps: Steps) -> int:
    world = World(SqliteFactory(path), events=False)
    await world.reopen()
    terms = await a_crowd_held(world, crowd)
    # Several wait in each turn, so that none is left empty.
    for _ in range(4):
        await world.accept(tenant="zz")
    while not (claims := await world.claim(1, terms=terms)):
        pass
    await end(world, claims[0])
    steps.take()
    assert [claim.job.tenant for claim in await world.claim(1, terms=terms)] == ["zz"]
    taken = steps.take()
    await world.close()
    return taken


async def test_a_claim_looks_at_no_turn_that_is_held(tmp_path: Path, steps: Steps) -> None:
    alone = await steps_of_a_claim(tmp_path / "alone.db", 1, steps)
    behind = await steps_of_a_claim(tmp_path / "behind.db", CROWD, steps)
    assert behind == alone > 0
