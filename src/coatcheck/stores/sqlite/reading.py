"""Reads: one job on the event loop, lists and measures aside. Expiry is decided here, never left to upkeep."""

import heapq
from collections.abc import Sequence
from math import sqrt

from coatcheck.core import limits
from coatcheck.core.ids import created_at_of
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import JobPage, JobQuery, QueueMeasure, StoredResult, TenantQueue, Tombstone
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.readers import Snapshot
from coatcheck.stores.sqlite.rows import attempt_from_row, job_from_row
from coatcheck.stores.sqlite.transaction import Transaction

NEWER_THAN_ALL = "job_~"
RUN_SAMPLE = 200
_NO_RUNS = (0, None, 0.0)


class Reading(Facet):
    """The engine's ReadingStore."""

    async def find_job(self, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        return self._readers.here(lambda snapshot: find(snapshot, tenant, job_id, now))

    async def read_result(self, tenant: str, job_id: str, now: InstantMs) -> StoredResult | None:
        row = await self._readers.aside(
            lambda snapshot: snapshot.row("read_result", tenant=tenant, job_id=job_id, now=now)
        )
        return None if row is None else StoredResult(content_type=row[0], file_name=row[1], body=row[2])

    async def list_jobs(self, query: JobQuery, now: InstantMs) -> JobPage:
        return await self._readers.aside(lambda snapshot: _list(snapshot, query, now))

    async def list_attempts(self, tenant: str, job_id: str) -> Sequence[AttemptRecord]:
        rows = await self._readers.aside(
            lambda snapshot: snapshot.rows(
                "list_attempts", tenant=tenant, job_id=job_id, limit=limits.ATTEMPTS_LISTED_MAX
            )
        )
        return [attempt_from_row(row) for row in rows]

    async def measure_queues(self, now: InstantMs) -> Sequence[QueueMeasure]:
        return await self._readers.aside(_measure)

    async def count_ahead(self, job: JobRecord, limit: int) -> int:
        place = {"tenant": job.tenant, "operation": job.operation, "priority": job.priority, "job_id": job.id}
        row = self._readers.here(lambda snapshot: snapshot.row("count_ahead", limit=limit, **place))
        return 0 if row is None else int(row[0])

    async def check_health(self) -> None:
        self._readers.here(lambda snapshot: snapshot.row("check_health"))
        if not self._writer.is_alive():
            raise StoreUnavailable("The writer has stopped.")


def find(snapshot: Snapshot | Transaction, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
    """The job, or its tombstone from the moment it expired, whether or not upkeep has been there."""
    row = snapshot.row("find_job", tenant=tenant, job_id=job_id, now=now, inline_max=limits.INLINE_RESULT_BYTES_MAX)
    if row is not None:
        job, tombstone_until = job_from_row(row[:-1]), row[-1]
        if job.expires_at is None or job.expires_at > now:
            return job
        return Tombstone(job.id, job.operation, job.expires_at) if tombstone_until > now else None
    row = snapshot.row("find_tombstone", tenant=tenant, job_id=job_id, now=now)
    return None if row is None else Tombstone(*row)


def _list(snapshot: Snapshot, query: JobQuery, now: InstantMs) -> JobPage:
    if query.operation is not None:
        operations = [query.operation]
    else:
        operations = [row[0] for row in snapshot.rows("list_operations", tenant=query.tenant)]
    runs = [_run_of(snapshot, query, operation, run, now) for operation in operations for run in _runs(query.status)]
    merged = heapq.merge(*runs, reverse=True)
    ids = [job_id for _, job_id in zip(range(query.limit + 1), merged, strict=False)]
    jobs = [find(snapshot, query.tenant, job_id, now) for job_id in ids[: query.limit]]
    return JobPage([job for job in jobs if isinstance(job, JobRecord)], has_more=len(ids) > query.limit)


def _runs(status: Status | None) -> Sequence[str]:
    """The runs of the index (or of the leases) that hold the jobs of a status; without one, all jobs."""
    if status is None:
        return ("list_open", Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
    return {Status.QUEUED: ("list_queued",), Status.RUNNING: ("list_running",)}.get(status, (status,))


def _run_of(snapshot: Snapshot, query: JobQuery, operation: str, run: str, now: InstantMs) -> list[str]:
    values = {
        "tenant": query.tenant,
        "operation": operation,
        "before": query.before or NEWER_THAN_ALL,
        "limit": query.limit + 1,
    }
    if isinstance(run, Status):
        rows = snapshot.rows("list_finished", status=run.value, now=now, **values)
    else:
        rows = snapshot.rows(run, **values)
    return [row[0] for row in rows]


def _measure(snapshot: Snapshot) -> Sequence[QueueMeasure]:
    ready: dict[str, int] = dict(snapshot.rows("measure_ready"))
    scheduled: dict[str, int] = dict(snapshot.rows("measure_scheduled"))
    running: dict[str, int] = dict(snapshot.rows("measure_running"))
    runs = {
        operation: (count, mean_ms / 1000, sqrt(max(square - mean_ms * mean_ms, 0.0)) / 1000)
        for operation, count, mean_ms, square in snapshot.rows("measure_runs", sample=RUN_SAMPLE)
    }
    tenants: dict[str, list[TenantQueue]] = {}
    for operation, *line in snapshot.rows("measure_tenants", limit=limits.TENANTS_MEASURED_MAX):
        tenants.setdefault(operation, []).append(_line(*line))
    return [
        QueueMeasure(
            operation=operation,
            ready=ready.get(operation, 0),
            scheduled=scheduled.get(operation, 0),
            running=running.get(operation, 0),
            oldest_ready_at=snapshot.rows("measure_oldest", operation=operation)[0][0],
            tenants=tenants.get(operation, ()),
            runs=runs.get(operation, _NO_RUNS)[0],
            recent_run_s=runs.get(operation, _NO_RUNS)[1],
            run_spread_s=runs.get(operation, _NO_RUNS)[2],
        )
        for operation in sorted(ready.keys() | scheduled.keys() | running.keys() | runs.keys())
    ]


def _line(tenant: str, ready: int, first_id: str, last_id: str, last_priority: int) -> TenantQueue:
    return TenantQueue(tenant, ready, created_at_of(first_id), created_at_of(last_id), last_priority)
