"""Where the servers under test keep their jobs: a file, or with TEST_STORE=postgres a database of the tests' server."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from harness.postgres_server import shared_server

IS_A_FILE = os.environ.get("TEST_STORE") != "postgres"
"""Whether the servers' store is a file of their own, whose disk may be full or damaged under them."""


def store_url(folder: Path) -> str:
    """The store of all servers that a test runs in this folder."""
    return f"sqlite:///{folder / 'store.db'}" if IS_A_FILE else _database(folder.resolve())


@cache
def _database(folder: Path) -> str:
    server = shared_server()
    # In a thread, since the test may be running a loop of its own.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, server.new_database()).result()
