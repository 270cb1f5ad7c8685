"""When the disk fails nobody is told that a write happened, and writing goes on once the disk is well again."""

import asyncio
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from coatcheck.core.ids import IdSequence
from coatcheck.store.clock import SystemClock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Accepted, Submission
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.stores.sqlite.transaction import Transaction

ids = IdSequence()
clock = SystemClock()


def submission(payload: bytes = b"{}") -> Submission:
    now = clock.now()
    return Submission(
        ids.next_id(clock.now_us(), 7), "default", "reports", "1", payload, now, now, None, 5, 5, "correlation"
    )


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """No file of this process may grow beyond this size: writing on fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


async def fill(store: SqliteStore, accepted: list[str]) -> None:
    for _ in range(500):
        new = submission(b'"' + b"x" * 20_000 + b'"')
        assert isinstance(await store.accept_job(new), Accepted)
        accepted.append(new.job_id)


async def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    store = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop"))
    await store.open()
    accepted: list[str] = []
    with file_size_limit(1024 * 1024):
        with pytest.raises(StoreUnavailable):
            await fill(store, accepted)
        assert accepted
        for job_id in accepted:
            assert await store.find_job("default", job_id, clock.now()) is not None
    assert isinstance(await store.accept_job(submission()), Accepted)
    assert (await store.measure_queues(clock.now()))[0].ready == len(accepted) + 1
    await store.close()


class FailingPoint:
    """Raises SQLite's own I/O error at a fault point, as often as told."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, name: str) -> None:
        if name == "before-commit" and self.left:
            self.left -= 1
            raise apsw.IOError("disk I/O error")


async def test_an_io_error_at_the_commit_fails_the_whole_batch_and_nothing_else(tmp_path: Path) -> None:
    point = FailingPoint()
    store = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop"), fault_point=point)
    await store.open()
    point.left = 1
    with pytest.raises(StoreUnavailable):
        await store.accept_job(submission())
    assert await store.measure_queues(clock.now()) == []
    assert isinstance(await store.accept_job(submission()), Accepted)
    await store.close()


async def test_a_poisoned_member_fails_alone(tmp_path: Path) -> None:
    sizes: list[int] = []
    config = SqliteConfig(tmp_path / "jobs.db", "shop", observe_commit=lambda members, _: sizes.append(members))
    store = SqliteStore(config)
    await store.open()
    twice = submission()
    answers = await asyncio.gather(
        *(store.accept_job(submission()) for _ in range(10)),
        store.accept_job(twice),
        store.accept_job(twice),
        *(store.accept_job(submission()) for _ in range(10)),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, Accepted) for answer in answers) == 21
    assert [type(answer) for answer in answers if not isinstance(answer, Accepted)] == [apsw.ConstraintError]
    assert (await store.measure_queues(clock.now()))[0].ready == 21
    await store.close()
    assert max(sizes) > 1


async def test_a_caller_that_went_away_disturbs_nobody(tmp_path: Path) -> None:
    store = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "shop"))
    await store.open()
    gone = asyncio.ensure_future(store.accept_job(submission()))
    await asyncio.sleep(0)
    gone.cancel()
    assert isinstance(await store.accept_job(submission()), Accepted)
    await store.close()


async def test_a_checkpoint_happens_in_the_writers_turn_and_keeps_the_log_bounded(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(SqliteConfig(path, "shop"))
    await store.open()
    payload = b'"' + b"x" * 200_000 + b'"'
    for _ in range(150):
        await store.accept_job(submission(payload))
    log_bytes = Path(f"{path}-wal").stat().st_size
    assert log_bytes < 20 * 1024 * 1024
    assert path.stat().st_size > 10 * 1024 * 1024
    await store.close()


def test_a_transaction_counts_what_it_changes() -> None:
    connection = apsw.Connection("")
    connection.execute("CREATE TABLE meta (name, value)")
    transaction = Transaction(connection, has_events=False, fault_point=lambda _: None)
    assert transaction.run("write_app", app="shop") == 1
    assert transaction.row("read_app") == ("shop",)
