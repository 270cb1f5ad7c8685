"""A worker with real runners on a real SQLite store, and shorthand to hand work in and to see what came of it."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson
from execution_handlers import app
from msgspec import structs

from coatcheck.admission.directory import Directory
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.ids import RANDOM_BITS, IdSequence
from coatcheck.core.job import JobRecord
from coatcheck.core.limits import PRIORITY_DEFAULT
from coatcheck.core.quotas import LimitKey
from coatcheck.execution.parts import WorkerParts, WorkerSettings, WorkerStore
from coatcheck.execution.worker import Worker
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Accepted, Submission
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.waiting import wait_until_async

TENANT = "default"
QUICK = WorkerSettings(
    concurrency=60, heartbeat_s=0.2, lease_s=5.0, cancel_grace_s=0.5, process_stop_s=0.1, attempt_stop_s=0.2
)


class ExecutionWorld:
    """One store, one worker, one folder for the marks of handlers."""

    def __init__(self, store: SqliteStore, worker: Worker, metrics: Metrics, folder: Path) -> None:
        self.store = store
        self.worker = worker
        self.metrics = metrics
        self.folder = folder
        self.clock = SystemClock()
        self._ids = IdSequence()

    async def submit(self, operation: str, number: int = 0, **changes: Any) -> str:
        """Hand in work; returns the job's id."""
        now = self.clock.now()
        submission = Submission(
            job_id=self._ids.next_id(self.clock.now_us(), secrets.randbits(RANDOM_BITS)),
            tenant=TENANT,
            operation=operation,
            operation_version="1",
            payload=orjson.dumps({"folder": str(self.folder), "number": number}),
            created_at=now,
            available_at=now,
            deadline_at=None,
            priority=PRIORITY_DEFAULT,
            max_attempts=app.policies.of(operation).max_attempts,
            correlation_id="corr",
        )
        disposition = await self.store.accept_job(structs.replace(submission, **changes))
        assert isinstance(disposition, Accepted)
        return disposition.job.id

    async def find(self, job_id: str) -> JobRecord:
        job = await self.store.find_job(TENANT, job_id, self.clock.now())
        assert isinstance(job, JobRecord)
        return job

    async def final(self, job_id: str, timeout_s: float = 30.0) -> JobRecord:
        """The job once it has ended."""

        async def is_final() -> bool:
            return (await self.find(job_id)).status.is_final

        await wait_until_async(is_final, f"{job_id} ends", timeout_s)
        return await self.find(job_id)

    async def result(self, job_id: str) -> Any:
        """The JSON result of a job that must succeed."""
        job = await self.final(job_id)
        assert job.result is not None, job.error
        stored = await self.store.read_result(TENANT, job_id, self.clock.now())
        assert stored is not None
        return orjson.loads(stored.body)

    async def outcomes(self, job_id: str) -> Sequence[str | None]:
        return [attempt.outcome for attempt in await self.store.list_attempts(TENANT, job_id)]

    async def cancel(self, job_id: str) -> None:
        await self.store.cancel_job(TENANT, job_id, "enough", app.policies, self.clock.now())

    def marks(self, what: str) -> list[str]:
        path = self.folder / what
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    async def wait_marks(self, what: str, count: int = 1) -> list[str]:
        await wait_until_async(lambda: len(self.marks(what)) >= count, f"{count} marks in {what}", 20.0)
        return self.marks(what)

    def let(self, what: str) -> None:
        """Let handlers go on that wait for this file."""
        (self.folder / what).touch()


async def open_store(folder: Path, fault_point: FaultPoint = no_fault, lease_s: float = QUICK.lease_s) -> SqliteStore:
    store = SqliteStore(SqliteConfig(folder / "jobs.db", app.name, lease_s), SystemClock(), fault_point)
    await store.open()
    return store


def make_worker(
    store: SqliteStore,
    metrics: Metrics,
    settings: WorkerSettings = QUICK,
    fault_point: FaultPoint = no_fault,
    in_front: WorkerStore | None = None,
    limits: Mapping[LimitKey, float | None] = MappingProxyType({}),
) -> Worker:
    """A worker of the store, through the one `in_front` of it where there is one."""
    clock = SystemClock()
    directory, asked = Directory(store, clock, limits), in_front or store
    return Worker(WorkerParts(asked, app, "execution_handlers:app", settings, metrics, clock, directory, fault_point))


@asynccontextmanager
async def running_world(
    folder: Path,
    settings: WorkerSettings = QUICK,
    fault_point: FaultPoint = no_fault,
    limits: Mapping[LimitKey, float | None] = MappingProxyType({}),
) -> AsyncIterator[ExecutionWorld]:
    """A worker that runs until the block ends."""
    store = await open_store(folder, fault_point)
    metrics = Metrics()
    worker = make_worker(store, metrics, settings, fault_point, limits=limits)
    try:
        await worker.start()
        yield ExecutionWorld(store, worker, metrics, folder)
    finally:
        await worker.stop()
        await store.close()
