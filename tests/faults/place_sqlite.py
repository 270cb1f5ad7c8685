"""What of a store should be gone when everything is at rest, counted behind the interface."""

import os
from pathlib import Path

import apsw

_ORPHANS = "SELECT count(*) FROM {table} WHERE job_id NOT IN (SELECT id FROM job)"
_COUNTS = {
    "open jobs": "SELECT count(*) FROM job WHERE status IS NULL",
    "leases": "SELECT count(*) FROM lease",
    "ready": "SELECT count(*) FROM ready",
    "scheduled": "SELECT count(*) FROM scheduled",
    "waiting turns": "SELECT count(*) FROM turn WHERE is_waiting = 1",
    "deadlines": "SELECT count(*) FROM deadline",
    "outbox entries": "SELECT count(*) FROM outbox",
    "expired jobs": "SELECT count(*) FROM job WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    "jobs with a tombstone": "SELECT count(*) FROM job JOIN tombstone ON job_id = id",
    "keys of nothing": "SELECT count(*) FROM idempotency_key WHERE job_id NOT IN (SELECT id FROM job)"
    " AND job_id NOT IN (SELECT job_id FROM tombstone)",
} | {f"orphans in {table}": _ORPHANS.format(table=table) for table in ("payload", "result", "attempt")}
_DAMAGE = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"


def count_leftovers(store: Path) -> dict[str, int]:
    """Rows that only open jobs have, rows of jobs that are gone, and sockets of processes that are dead, by name."""
    connection = _open(store)
    try:
        counts = {name: _count(connection, statement) for name, statement in _COUNTS.items()}
    finally:
        connection.close()
    sockets = [path.name for path in Path(f"{store}-wake").iterdir()]
    return counts | {"sockets of the dead": sum(not _is_alive(name) for name in sockets)}


def count_damage(store: Path) -> dict[str, int]:
    """What SQLite finds wrong with the file."""
    connection = _open(store)
    try:
        return {"damaged pages": _count(connection, _DAMAGE)}
    finally:
        connection.close()


def _open(store: Path) -> apsw.Connection:
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5_000)
    return connection


def _count(connection: apsw.Connection, statement: str) -> int:
    return int(connection.execute(statement).get)


def _is_alive(socket_name: str) -> bool:
    """A socket is named by its process: "pid-random"."""
    try:
        os.kill(int(socket_name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    return True
