"""PostgreSQL as a place of scenes: a database of its own on a server of the tests'."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from coatcheck.stores.postgres.statements import migrations
from harness.postgres_server import PostgresServer

_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_COUNTS = {
    "open jobs": "SELECT count(*) FROM coatcheck.job WHERE status IS NULL",
    "leases": "SELECT count(*) FROM coatcheck.lease",
    "ready": "SELECT count(*) FROM coatcheck.ready",
    "scheduled": "SELECT count(*) FROM coatcheck.scheduled",
    "inbox": "SELECT count(*) FROM coatcheck.inbox",
    "waiting turns": "SELECT count(*) FROM coatcheck.turn WHERE is_waiting",
    "deadlines": "SELECT count(*) FROM coatcheck.deadline",
    "outbox entries": "SELECT count(*) FROM coatcheck.outbox",
    "expired jobs": f"SELECT count(*) FROM coatcheck.job WHERE expires_at <= {_NOW_MS}",  # noqa: S608 - written above
    "jobs with a tombstone": "SELECT count(*) FROM coatcheck.job JOIN coatcheck.tombstone ON job_id = id",
    "keys of nothing": "SELECT count(*) FROM coatcheck.idempotency_key AS k"
    " WHERE NOT EXISTS (SELECT 1 FROM coatcheck.job WHERE id = k.job_id)"
    " AND NOT EXISTS (SELECT 1 FROM coatcheck.tombstone WHERE job_id = k.job_id)",
    "transactions left open": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '1 s'",
} | {
    f"orphans in {table}": f"SELECT count(*) FROM coatcheck.{table} AS t"  # noqa: S608 - names of our own schema
    " WHERE NOT EXISTS (SELECT 1 FROM coatcheck.job WHERE id = t.job_id)"
    for table in ("payload", "result", "attempt")
}
_HELD = "SELECT count(*) FROM coatcheck.turn WHERE is_held"
_RELATIONS = "FROM pg_class WHERE relnamespace = 'coatcheck'::regnamespace AND relkind ="
_CHECK_TOOL = "CREATE EXTENSION IF NOT EXISTS amcheck"
_CHECK_INDEXES = f"SELECT bt_index_check(oid, true) {_RELATIONS} 'i'"
_DAMAGE = f"SELECT count(*) FROM (SELECT verify_heapam(oid) {_RELATIONS} 'r') AS damage"  # noqa: S608 - written above


class PostgresPlace:
    """A fresh database on this server."""

    name = "postgres"
    lacks: Mapping[str, str] = MappingProxyType(
        {
            "committed-before-mark": "its log needs no mark beside it to be known as whole",
            "wal-checkpoint": "checkpoints are the server's own",
        }
    )
    has_doubtful_commits = True
    migration_steps = sum(len(statements) for _, statements in migrations())

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url = asyncio.run(server.new_database())

    def count_leftovers(self) -> dict[str, int]:
        """See Place; and transactions that nobody ends."""
        counts = ", ".join(f"({statement})" for statement in _COUNTS.values())
        ((*numbers,),) = asyncio.run(self._server.execute(f"SELECT {counts}", self.url))
        return dict(zip(_COUNTS, numbers, strict=True))

    def count_held(self) -> int:
        """See Place."""
        ((held,),) = asyncio.run(self._server.execute(_HELD, self.url))
        return int(held)

    def count_damage(self) -> dict[str, int]:
        """What PostgreSQL finds wrong with tables; an index that does not fit its table raises."""
        asyncio.run(self._server.execute(_CHECK_TOOL, self.url))
        asyncio.run(self._server.execute(_CHECK_INDEXES, self.url))
        ((damaged,),) = asyncio.run(self._server.execute(_DAMAGE, self.url))
        return {"damaged rows": damaged}
