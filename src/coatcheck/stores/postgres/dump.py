"""The database's rows as the neutral records of a dump, and back."""

from collections.abc import AsyncIterator, Mapping, Sequence

import asyncpg

from coatcheck.store.dump import COLUMNS, Kind, Record, Value
from coatcheck.store.errors import StoreRefused
from coatcheck.stores.postgres.connection import Connection, fetch
from coatcheck.stores.postgres.statements import sql

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
# Nobody keeps a lease alive any more, so it has run out. Who waits for a turn is settled at the end.
_OWN: Mapping[Kind, Mapping[str, Value]] = {Kind.LEASE: {"ends_at": 0}, Kind.TURN: {"is_waiting": True}}


class PostgresDump:
    """The engine's Dump and Load, on a connection in a transaction that holds the tables."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def count(self) -> Mapping[Kind, int]:
        (counts,) = await fetch(self._connection, "count_rows")
        return dict(zip(Kind, counts, strict=True))

    async def read(self, kind: Kind) -> AsyncIterator[Sequence[Record]]:
        cursor = await self._connection.cursor(sql(_READING[kind]))
        while rows := await cursor.fetch(kind.rows_at_once):
            yield [tuple(row) for row in rows]

    async def write(self, kind: Kind, records: Sequence[Record]) -> None:
        own = _OWN.get(kind, {})
        added = tuple(own.values())
        try:
            await self._connection.copy_records_to_table(
                kind.value,
                schema_name="coatcheck",
                columns=[*COLUMNS[kind], *own],
                records=[(*record, *added) for record in records] if added else records,
            )
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
            raise StoreRefused(f"store: a row of {kind} does not fit into the database: {error}.") from error

    async def settle(self) -> None:
        await fetch(self._connection, "rest_turns")
        await fetch(self._connection, "number_outbox_after")
        await fetch(self._connection, "number_audit_after")
        await fetch(self._connection, "raise_controls_version")
