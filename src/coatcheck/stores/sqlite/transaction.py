"""One write transaction as the verbs see it: statements by name, and the hints to give once it is committed."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias, TypeVar

import apsw
import msgspec

from coatcheck.core import events, limits
from coatcheck.core.events import EventType
from coatcheck.core.faults import FaultPoint
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.rows import Row, job_from_row
from coatcheck.stores.sqlite.statements import sql, sql_for_rows

T = TypeVar("T")

# A statement is prepared for each of these numbers of rows; NULLs fill it up, and every statement passes over them.
ROWS_AT_ONCE = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
ROWS_AT_ONCE_MAX = ROWS_AT_ONCE[-1]


class Transaction:
    """Handed to each action of a batch. An action may run twice (alone, if a neighbour failed), so it must not
    keep anything outside the transaction."""

    def __init__(self, connection: apsw.Connection, has_events: bool, fault_point: FaultPoint) -> None:
        self._connection = connection
        self._has_events = has_events
        self.fault_point = fault_point
        self.hints: set[tuple[WakeUpKind, str]] = set()

    def run(self, statement: str, /, **values: Any) -> int:
        """Execute a statement; returns how many rows it changed."""
        self._connection.execute(sql(statement), values)
        return self._connection.changes()

    def run_many(self, statement: str, rows: Sequence[Row]) -> int:
        """Execute a statement for many rows at once; returns how many rows it changed.

        Every step of a statement lets go of the interpreter and waits for it again: one for all rows is what makes a
        busy writer fast.
        """
        changed = 0
        for text, values in _for_rows(statement, rows):
            self._connection.execute(text, values)
            changed += self._connection.changes()
        return changed

    def read_many(self, statement: str, rows: Sequence[Row], decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
        """Look up many rows at once. The statement returns all it finds as one JSON array, in one step."""
        found: list[T] = []
        for text, values in _for_rows(statement, rows):
            found += decoder.decode(self._connection.execute(text, values).get)
        return found

    def row(self, statement: str, /, **values: Any) -> Row | None:
        """The first row of a statement, or None. The statement is run to its end."""
        rows = self._connection.execute(sql(statement), values).fetchall()
        return rows[0] if rows else None

    def rows(self, statement: str, /, **values: Any) -> list[Row]:
        """All rows of a statement; every one that can return many has a limit."""
        return self._connection.execute(sql(statement), values).fetchall()

    def job(self, job_id: str, now: InstantMs) -> JobRecord | None:
        """The job as this transaction sees it."""
        row = self.row("find_any_job", job_id=job_id, now=now, inline_max=limits.INLINE_RESULT_BYTES_MAX)
        return None if row is None else job_from_row(row)

    def hint(self, kind: WakeUpKind, job_id: str = "") -> None:
        """Wake somebody up after the commit."""
        self.hints.add((kind, job_id))

    def tell(self, event: EventType, jobs: Sequence[JobRecord]) -> None:
        """Write the outbox entries of a change of status, where a channel is configured."""
        if not self._has_events or not jobs:
            return
        self.run_many("insert_outbox", [_entry(event, job) for job in jobs])
        self.fault_point("outbox-written")
        self.hint(WakeUpKind.OUTBOX)


def _for_rows(statement: str, rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    for start in range(0, len(rows), ROWS_AT_ONCE_MAX):
        part = rows[start : start + ROWS_AT_ONCE_MAX]
        count = ROWS_AT_ONCE[bisect_left(ROWS_AT_ONCE, len(part))]
        fill = repeat(None, (count - len(part)) * len(part[0]))
        yield sql_for_rows(statement, count), tuple(chain(chain.from_iterable(part), fill))


def _entry(event: EventType, job: JobRecord) -> Row:
    data = events.event_data(job)
    return event.value, job.id, job.tenant, job.operation, job.version, job.updated_at, job.correlation_id, data


Item = TypeVar("Item")

Action: TypeAlias = Callable[[Transaction], T]
Bulk: TypeAlias = Callable[[Transaction, Sequence[Item]], Sequence[T]]
"""An action for all members of a batch that want the same: one answer for each, in order."""
