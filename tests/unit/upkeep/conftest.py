"""A store in a folder of the test's own, with a clock that stands still."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import apsw
import pytest_asyncio

from coatcheck.store.contract import Store
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import LEASE_S, Capabilities, World


class OneFile:
    """Stores over one SQLite file."""

    capabilities = Capabilities()

    def __init__(self, folder: Path) -> None:
        self._path = folder / "jobs.db"

    async def open_store(self, clock: ManualClock, events: bool) -> Store:
        store = SqliteStore(SqliteConfig(self._path, "tests", LEASE_S, events), clock)
        await store.open()
        return store

    async def count_rows(self) -> Mapping[str, int]:
        connection = apsw.Connection(str(self._path), apsw.SQLITE_OPEN_READONLY)
        return {"outbox": len(connection.execute("SELECT seq FROM outbox").fetchall())}


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose store writes an outbox."""
    factory, clock = OneFile(tmp_path), ManualClock()
    store = await factory.open_store(clock, events=True)
    yield World(store, clock, factory, events=True)
    await store.close()
