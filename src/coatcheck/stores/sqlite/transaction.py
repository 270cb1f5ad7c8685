"""One write transaction as the verbs see it: statements by name, and the hints to give once it is committed."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import apsw

from coatcheck.core import events, limits
from coatcheck.core.events import EventType
from coatcheck.core.faults import FaultPoint
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.records import WakeUpKind
from coatcheck.stores.sqlite.rows import Row, job_from_row
from coatcheck.stores.sqlite.statements import sql

T = TypeVar("T")


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

    def tell(self, event: EventType, job: JobRecord) -> None:
        """Write the outbox entry of a change of status, where a channel is configured."""
        if not self._has_events:
            return
        self.run(
            "insert_outbox",
            type=event.value,
            job_id=job.id,
            tenant=job.tenant,
            operation=job.operation,
            version=job.version,
            occurred_at=job.updated_at,
            correlation_id=job.correlation_id,
            data=events.event_data(job),
        )
        self.fault_point("outbox-written")
        self.hint(WakeUpKind.OUTBOX)


Action: TypeAlias = Callable[[Transaction], T]
