"""Stores to break: an empty one, and one that is left as a killed process leaves it."""

from pathlib import Path

import pytest

from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from disk.edge import app


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """An empty store that is closed."""
    path = tmp_path / "jobs.db"
    store = SqliteStore(SqliteConfig(path, app.name))
    await store.open()
    await store.close()
    return path
