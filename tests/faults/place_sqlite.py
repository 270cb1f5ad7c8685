"""SQLite as a place of scenes: one file in the scene's folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import apsw

from coatcheck.stores.sqlite.statements import migrations

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
_HELD = "SELECT count(*) FROM turn WHERE is_held = 1"
_DAMAGE = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"


class SqlitePlace:
    """The file `store.db` of a folder."""

    name = "sqlite"
    lacks: Mapping[str, str] = MappingProxyType({"inbox-promoted": "no transaction of a caller's reaches this file"})
    has_doubtful_commits = False
    migration_steps = sum(len(statements) for _, statements in migrations())

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store.db"
        self.url = f"sqlite:///{self.store}"

    def count_leftovers(self) -> dict[str, int]:
        """See Place; and sockets of processes that are dead."""
        counts = self._count(_COUNTS)
        sockets = [path.name for path in Path(f"{self.store}-wake").iterdir()]
        return counts | {"sockets of the dead": sum(not _is_alive(name) for name in sockets)}

    def count_held(self) -> int:
        """See Place."""
        return self._count({"held": _HELD})["held"]

    def count_damage(self) -> dict[str, int]:
        """What SQLite finds wrong with the file."""
        return self._count({"damaged pages": _DAMAGE})

    def _count(self, statements: Mapping[str, str]) -> dict[str, int]:
        connection = apsw.Connection(str(self.store), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(5_000)
        try:
            return {name: int(connection.execute(statement).get) for name, statement in statements.items()}
        finally:
            connection.close()


def _is_alive(socket_name: str) -> bool:
    """A socket is named by its process: "pid-random"."""
    try:
        os.kill(int(socket_name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    return True
