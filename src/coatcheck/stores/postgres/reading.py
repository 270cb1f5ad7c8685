"""Reads: one job together with others, lists and measures each by one statement. Expiry is decided here."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.ids import created_at_of
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import JobPage, JobQuery, QueueMeasure, StoredResult, TenantQueue, Tombstone
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.rows import Row, attempt_from_row, job_from_row
from coatcheck.stores.postgres.transaction import Transaction

NEWER_THAN_ALL = "job_~"
RUN_SAMPLE = 200
_JOB_STARTS = 5
_NUL = "\0"


class Reading(Facet):
    """The engine's ReadingStore. No name or id with a NUL is stored, nor could PostgreSQL be asked for it."""

    async def find_job(self, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        if _NUL in job_id:
            return None
        row = await self._readers.find(tenant, job_id, now)
        return None if row is None else job_or_tombstone(row, now)

    async def read_result(self, tenant: str, job_id: str, now: InstantMs) -> StoredResult | None:
        if _NUL in job_id:
            return None
        rows = await self._transactions.read("read_result", job_id, tenant, now)
        return StoredResult(content_type=rows[0][0], file_name=rows[0][1], body=rows[0][2]) if rows else None

    async def list_jobs(self, query: JobQuery, now: InstantMs) -> JobPage:
        status, before = query.status, query.before or NEWER_THAN_ALL
        if _NUL in before or _NUL in (query.operation or ""):
            return JobPage([], has_more=False)
        finals = [one.value for one in Status if one.is_final and status in (None, one)]
        rows = await self._transactions.read(
            "list_jobs",
            query.tenant,
            query.operation,
            before,
            query.limit + 1,
            status is None,
            status is Status.QUEUED,
            status is Status.RUNNING,
            finals,
            now,
            limits.INLINE_RESULT_BYTES_MAX,
        )
        return JobPage([job_from_row(row) for row in rows[: query.limit]], has_more=len(rows) > query.limit)

    async def list_attempts(self, tenant: str, job_id: str) -> Sequence[AttemptRecord]:
        if _NUL in job_id:
            return ()
        rows = await self._transactions.read("list_attempts", job_id, tenant, limits.ATTEMPTS_LISTED_MAX)
        return [attempt_from_row(row) for row in rows]

    async def measure_queues(self, now: InstantMs) -> Sequence[QueueMeasure]:
        rows = await self._transactions.read("measure_queues", RUN_SAMPLE, limits.TENANTS_MEASURED_MAX)
        return [
            QueueMeasure(
                operation=operation,
                ready=ready,
                scheduled=scheduled,
                running=running,
                oldest_ready_at=oldest,
                recent_run_s=None if run_ms is None else run_ms / 1000,
                runs=runs,
                run_spread_s=0.0 if spread_ms is None else float(spread_ms) / 1000,
                tenants=[
                    TenantQueue(tenant, jobs, created_at_of(first), created_at_of(last), last_priority)
                    for tenant, jobs, first, last, last_priority in zip(*lines, strict=True)
                ],
            )
            for operation, ready, scheduled, running, oldest, runs, run_ms, spread_ms, *lines in rows
        ]

    async def count_ahead(self, job: JobRecord, limit: int) -> int:
        rows = await self._transactions.read("count_ahead", job.operation, job.tenant, job.priority, job.id, limit)
        return int(rows[0][0])

    async def check_health(self) -> None:
        rows = await self._transactions.read("check_health")
        if not rows[0][0]:
            raise StoreUnavailable("PostgreSQL: this server can only be read.")


def job_or_tombstone(row: Row, now: InstantMs) -> JobRecord | Tombstone | None:
    """What a row of find_jobs stands for. A job is its tombstone from the moment it expired, swept or not."""
    _, buried_id, buried_operation, buried_at, tombstone_until = row[:_JOB_STARTS]
    if buried_id is not None:
        return Tombstone(buried_id, buried_operation, buried_at)
    job = job_from_row(row[_JOB_STARTS:])
    if job.expires_at is None or job.expires_at > now:
        return job
    return Tombstone(job.id, job.operation, job.expires_at) if tombstone_until > now else None


async def find(transaction: Transaction, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
    """As find_job, within a transaction."""
    row = await transaction.row("find_jobs", [job_id], [tenant], [now], limits.INLINE_RESULT_BYTES_MAX)
    return None if row is None else job_or_tombstone(row, now)
