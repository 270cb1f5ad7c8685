"""Servers, clients and stages as the contract tests have them, and a store with a clock that stands still."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.testing.conformance.world import World
from contract.conftest import client, connect, crash_server, neighbour, serve, server, stage
from harness.sqlite_factory import SqliteFactory

__all__ = ["client", "connect", "crash_server", "neighbour", "serve", "server", "stage"]


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose store writes an outbox."""
    made = World(SqliteFactory(tmp_path / "store.db"), events=True)
    await made.reopen()
    yield made
    await made.close()


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
