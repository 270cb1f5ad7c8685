"""No file descriptor left: what is open goes on, what cannot open is refused, and all is well once there are some."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coatcheck.store.errors import StoreUnavailable
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from disk.edge import CLOCK, app, broken_promises, open_edge


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    """Every new descriptor is refused inside the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/", os.O_RDONLY)
    os.close(probe)
    # Holes below the highest open descriptor could still be given away.
    holes = [os.open("/", os.O_RDONLY) for _ in range(probe, max(map(int, os.listdir("/proc/self/fd"))) + 1)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max([probe, *holes]) + 1, before[1]))
    last = [fd for fd in [_open_or_none() for _ in range(8)] if fd is not None]
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in (*holes, *last):
            os.close(descriptor)


def _open_or_none() -> int | None:
    try:
        return os.open("/", os.O_RDONLY)
    except OSError:
        return None


async def test_an_open_store_goes_on(path: Path) -> None:
    async with open_edge(path) as client:
        await client.submit()
        with no_descriptors_left():
            assert await client.submit() == 202
            await client.work()
            await client.read_all()
            # Lists are read in threads that open the file when they are first needed.
            answer = await client.http.get("/v1/notes")
            assert answer.status_code in {200, 503}, answer.text
        answer = await client.http.get("/v1/notes")
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["jobs"]) == 2
    assert await broken_promises(path, client.told) == []


async def test_a_store_that_cannot_open_says_so_and_opens_later(path: Path) -> None:
    store = SqliteStore(SqliteConfig(path, app.name))
    with no_descriptors_left(), pytest.raises(StoreUnavailable):
        await store.open()
    await store.open()
    await store.measure_queues(CLOCK.now())
    await store.close()
