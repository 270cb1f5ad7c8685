"""SQLite for the shipped suite: one database file."""

from collections.abc import Mapping
from pathlib import Path

import apsw

from coatcheck.core.faults import FaultPoint
from coatcheck.store.contract import Store
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import LEASE_S, Capabilities

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'meta'"


class SqliteFactory:
    """One database file. SQLite needs no allowance."""

    capabilities = Capabilities()

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open_store(self, clock: ManualClock, events: bool, fault_point: FaultPoint) -> Store:
        config = SqliteConfig(path=self.path, app_name="conformance", lease_s=LEASE_S, events=events)
        store = SqliteStore(config, clock, fault_point)
        await store.open()
        return store

    async def count_rows(self) -> Mapping[str, int]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        names = [row[0] for row in connection.execute(_TABLES)]
        counts = {name: connection.execute(f'SELECT count(*) FROM "{name}"').get for name in names}  # noqa: S608 - from the schema
        connection.close()
        return counts
