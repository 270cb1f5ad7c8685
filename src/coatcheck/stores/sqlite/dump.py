"""The file's rows as the neutral records of a dump, and back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import islice

import apsw

from coatcheck.store.dump import COLUMNS, FLAGS, Kind, Record
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.sqlite.statements import sql

_READING = {
    Kind.JOB: "dump_job",
    Kind.PAYLOAD: "dump_payload",
    Kind.RESULT: "dump_result",
    Kind.ATTEMPT: "dump_attempt",
    Kind.EFFECT: "dump_effect",
    Kind.KEY: "dump_idempotency_key",
    Kind.TOMBSTONE: "dump_tombstone",
    Kind.READY: "dump_ready",
    Kind.TURN: "dump_turn",
    Kind.SCHEDULED: "dump_scheduled",
    Kind.LEASE: "dump_lease",
    Kind.DEADLINE: "dump_deadline",
    Kind.OUTBOX: "dump_outbox",
    Kind.JOB_COST: "dump_job_cost",
    Kind.SPENDING: "dump_spending",
    Kind.TENANT: "dump_tenant",
    Kind.API_KEY: "dump_api_key",
    Kind.LIMIT: "dump_limit_override",
    Kind.MODE: "dump_operation_mode",
    Kind.AUDIT: "dump_audit",
}
_WRITING = {
    Kind.JOB: "load_job",
    Kind.PAYLOAD: "load_payload",
    Kind.RESULT: "load_result",
    Kind.ATTEMPT: "load_attempt",
    Kind.EFFECT: "load_effect",
    Kind.KEY: "load_idempotency_key",
    Kind.TOMBSTONE: "load_tombstone",
    Kind.READY: "load_ready",
    Kind.TURN: "load_turn",
    Kind.SCHEDULED: "load_scheduled",
    Kind.LEASE: "load_lease",
    Kind.DEADLINE: "load_deadline",
    Kind.OUTBOX: "load_outbox",
    Kind.JOB_COST: "load_job_cost",
    Kind.SPENDING: "load_spending",
    Kind.TENANT: "load_tenant",
    Kind.API_KEY: "load_api_key",
    Kind.LIMIT: "load_limit_override",
    Kind.MODE: "load_operation_mode",
    Kind.AUDIT: "load_audit",
}


class SqliteDump:
    """The engine's Dump and Load, on a connection in a transaction that nobody else can disturb."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def count(self) -> Mapping[Kind, int]:
        (counts,) = self._connection.execute(sql("count_rows")).fetchall()
        return dict(zip(Kind, counts, strict=True))

    async def read(self, kind: Kind) -> AsyncIterator[Sequence[Record]]:
        flags = [place for place, name in enumerate(COLUMNS[kind]) if name in FLAGS]
        rows = self._connection.execute(sql(_READING[kind]))
        while batch := list(islice(rows, kind.rows_at_once)):
            yield [_with_flags(row, flags) for row in batch] if flags else batch

    async def write(self, kind: Kind, records: Sequence[Record]) -> None:
        try:
            self._connection.executemany(sql(_WRITING[kind]), records)
        except apsw.ConstraintError as error:
            raise StoreRefused(f"store: a row of {kind} does not fit into the file: {error}.") from error

    async def settle(self) -> None:
        """Let no process take the controls for those it knew. Whose turn it is was counted with the turns."""
        self._connection.execute(sql("raise_controls_version"))


def _with_flags(row: Record, places: Sequence[int]) -> Record:
    """A row with bool where SQLite has 0 and 1."""
    values = list(row)
    for place in places:
        values[place] = bool(values[place])
    return tuple(values)
