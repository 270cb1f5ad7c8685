"""The engines the model tests run on. Another engine is another factory in ENGINES."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw

from coatcheck.core.faults import FaultPoint
from coatcheck.store.contract import Store
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.conformance.world import LEASE_S, Capabilities, StoreFactory
from harness.postgres_factory import PostgresFactory

_MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh folder is made below it
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'meta'"


class SqliteEngine:
    """One database file in a folder."""

    capabilities = Capabilities()

    def __init__(self, folder: Path) -> None:
        self._path = folder / "model.db"

    async def open_store(self, clock: ManualClock, events: bool, fault_point: FaultPoint) -> Store:
        store = SqliteStore(SqliteConfig(self._path, "model", LEASE_S, events), clock, fault_point)
        await store.open()
        return store

    async def count_rows(self) -> Mapping[str, int]:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        names = [row[0] for row in connection.execute(_TABLES)]
        counts = {name: connection.execute(f'SELECT count(*) FROM "{name}"').get for name in names}  # noqa: S608 - from the schema
        connection.close()
        return counts


class PostgresEngine(PostgresFactory):
    """One database of the tests' own server; the folder stays empty."""

    def __init__(self, folder: Path) -> None:
        super().__init__()


ENGINES: dict[str, Callable[[Path], StoreFactory]] = {"sqlite": SqliteEngine, "postgres": PostgresEngine}


def memory_folder() -> Path | None:
    """Where files stand in memory, or None where the system has no such place: these tests lose no power."""
    return _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None


@contextmanager
def fresh_engine(name: str) -> Iterator[StoreFactory]:
    """An empty database of an engine."""
    folder = Path(tempfile.mkdtemp(prefix="coatcheck-model-", dir=memory_folder()))
    try:
        yield ENGINES[name](folder)
    finally:
        shutil.rmtree(folder)
