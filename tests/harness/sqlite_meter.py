"""What a store on SQLite does: its statements and the rows they change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from coatcheck.stores.sqlite.statements import sql

Cost: TypeAlias = tuple[int, int]
"""Statements and rows."""

_FRAME = ("BEGIN", "COMMIT", "ROLLBACK")


class Meter:
    """Counts the statements and changed rows of every connection opened under it."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.commits = 0
        self._connections: list[apsw.Connection] = []

    def watched(self, open_connection: Callable[[Path], apsw.Connection]) -> Callable[[Path], apsw.Connection]:
        def open_watched(path: Path) -> apsw.Connection:
            connection = open_connection(path)
            connection.exec_trace = self._note
            self._connections.append(connection)
            return connection

        return open_watched

    def _note(self, cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        if statement == sql("count_commit"):
            self.commits += 1
        elif not statement.startswith(_FRAME):
            self.statements.append(statement)
        return True

    @property
    def rows(self) -> int:
        """Those of the verbs alone: that a commit counts itself belongs to its frame."""
        return sum(connection.total_changes() for connection in self._connections) - self.commits

    @contextmanager
    def measuring(self) -> Iterator[list[Cost]]:
        """Fills the list with one cost when the block ends."""
        self.statements.clear()
        before, costs = self.rows, list[Cost]()
        yield costs
        costs.append((len(self.statements), self.rows - before))
