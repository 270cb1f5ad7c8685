"""A store in a folder of the test's own, with a clock that stands still."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from coatcheck.testing.conformance.world import World
from harness.sqlite_factory import SqliteFactory


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose store writes an outbox."""
    world = World(SqliteFactory(tmp_path / "jobs.db"), events=True)
    await world.reopen()
    yield world
    await world.close()
