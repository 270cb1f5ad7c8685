"""Several processes on one file: turns for writers, hints between processes, one relay."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coatcheck.core.ids import IdSequence
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Submission, WakeUp, WakeUpKind
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore

ids = IdSequence()
clock = SystemClock()


def submission() -> Submission:
    now = clock.now()
    job_id = ids.next_id(clock.now_us(), 7)
    return Submission(job_id, "default", "reports", "1", b"{}", now, now, None, 5, 5, "correlation")


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    one = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop", events=True))
    two = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop", events=True))
    await one.open()
    await two.open()
    yield one, two
    await two.close()
    await one.close()


async def test_a_hint_reaches_the_other_store(stores: tuple[SqliteStore, SqliteStore]) -> None:
    one, two = stores
    heard: asyncio.Queue[WakeUp] = asyncio.Queue()
    stop = two.listen(heard.put_nowait)
    await one.accept_job(submission())
    kinds = {(await asyncio.wait_for(heard.get(), 2)).kind for _ in range(2)}
    assert kinds == {WakeUpKind.READY, WakeUpKind.OUTBOX}
    stop()


async def test_a_commit_is_read_at_once_by_the_other_store(stores: tuple[SqliteStore, SqliteStore]) -> None:
    one, two = stores
    for _ in range(50):
        new = submission()
        await one.accept_job(new)
        assert await two.find_job("default", new.job_id, clock.now()) is not None


async def test_only_one_relay_has_the_turn_until_it_closes(stores: tuple[SqliteStore, SqliteStore]) -> None:
    one, two = stores
    await one.accept_job(submission())
    assert len(await one.read_outbox(10)) == 1
    assert await two.read_outbox(10) == ()


async def test_a_dead_process_socket_is_taken_away(tmp_path: Path) -> None:
    store = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop"))
    await store.open()
    dead = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom coatcheck.stores.sqlite.wakeups import WakeUps\n"
        "async def main():\n    WakeUps(Path(sys.argv[1]))\n    os._exit(0)\nasyncio.run(main())"
    )
    subprocess.run([sys.executable, "-c", dead, str(tmp_path / "jobs.db")], check=True)
    assert len(list((tmp_path / "jobs.db-wake").iterdir())) == 2
    await store.accept_job(submission())
    assert len(list((tmp_path / "jobs.db-wake").iterdir())) == 1
    await store.close()
    assert list((tmp_path / "jobs.db-wake").iterdir()) == []


WRITER = """
import asyncio, secrets, sys
from pathlib import Path
from coatcheck.core.ids import IdSequence
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Submission
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore

async def main():
    clock, ids = SystemClock(), IdSequence()
    store = SqliteStore(SqliteConfig(Path(sys.argv[1]), "shop"))
    await store.open()
    slowest = 0.0
    for _ in range(200):
        now = clock.now()
        job_id = ids.next_id(clock.now_us(), secrets.randbits(84))
        began = clock.monotonic_s()
        await store.accept_job(Submission(job_id, "default", "reports", "1", b"{}", now, now, None, 5, 5, "c"))
        slowest = max(slowest, clock.monotonic_s() - began)
    await store.close()
    print(slowest)

asyncio.run(main())
"""


async def test_writers_of_several_processes_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(SqliteConfig(path, "shop"))
    await store.open()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in processes:
        output, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0
        # SQLite's own busy handler lets a writer wait for seconds here; with turns it is a few commits.
        assert float(output) < 1.0
    measure = await store.measure_queues(clock.now())
    assert measure[0].ready == 600
    await store.close()
