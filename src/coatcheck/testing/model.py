"""The reference model as readers see it: what a store must answer to every read, by arithmetic on dictionaries."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from coatcheck.core import limits
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord, ResultInfo
from coatcheck.core.policy import Policy
from coatcheck.store.records import JobPage, JobQuery, Lease, QueueMeasure, StoredResult, Tombstone
from coatcheck.testing.model_state import ModelJob, ModelState, Place


class Model:
    """Predicts answers. What changes it stands in `Changes`.

    Args:
        policies: of every operation that will be used.
        weights: of tenants whose weight is not 1; powers of two, so that sums are exact.
    """

    def __init__(self, policies: dict[str, Policy], weights: Mapping[str, float] | None = None) -> None:
        costs = {tenant: 1.0 / weight for tenant, weight in (weights or {}).items()}
        self.state = ModelState(policies, costs)

    def find(self, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        """The job, its tombstone from the moment it expired, or None."""
        job = self.state.jobs.get(job_id)
        if job is not None:
            return self._seen(job, now) if job.record.tenant == tenant else None
        left = self.state.tombstones.get(job_id)
        is_kept = left is not None and left.tenant == tenant and left.kept_until > now
        return left.tombstone if left is not None and is_kept else None

    def record(self, job_id: str, now: InstantMs) -> JobRecord:
        """The record of a job that has not expired, as a write hands it out."""
        return self._record(self.state.jobs[job_id], now)

    def read_result(self, tenant: str, job_id: str, now: InstantMs) -> StoredResult | None:
        job = self.state.jobs.get(job_id)
        if job is None or job.record.tenant != tenant or job.result is None:
            return None
        expires_at = job.record.result_expires_at
        if expires_at is None or expires_at <= now:
            return None
        return StoredResult(job.result.content_type, job.result.body, job.result.file_name)

    def list_jobs(self, query: JobQuery, now: InstantMs) -> JobPage:
        """A page of what `find` would show, newest first."""
        seen = [self.find(query.tenant, job_id, now) for job_id in sorted(self.state.jobs, reverse=True)]
        jobs = [job for job in seen if isinstance(job, JobRecord) and _is_wanted(job, query)]
        return JobPage(jobs[: query.limit], has_more=len(jobs) > query.limit)

    def list_attempts(self, tenant: str, job_id: str) -> Sequence[AttemptRecord]:
        job = self.state.jobs.get(job_id)
        if job is None or job.record.tenant != tenant:
            return []
        running = [AttemptRecord(job.record.attempt, job.attempt_started_at, None, None, None)]
        return [*job.attempts, *(running if job.place is Place.RUNNING else [])]

    def measure(self, operation: str) -> QueueMeasure:
        """Counts and the oldest ready job of one operation. Run times are estimates: None here."""
        counts = {place: len(self.state.in_place(place, operation)) for place in Place}
        oldest = min((job.record.available_at for job in self.state.in_place(Place.READY, operation)), default=None)
        return QueueMeasure(
            operation=operation,
            ready=counts[Place.READY],
            scheduled=counts[Place.SCHEDULED],
            running=counts[Place.RUNNING],
            oldest_ready_at=oldest,
            recent_run_s=None,
        )

    def find_effect(self, lease: Lease, name: str) -> tuple[bool, bytes | None]:
        """Whether the lease holds, and what is recorded under the name."""
        job = self.state.holder(lease)
        return (False, None) if job is None else (True, self.state.effects.get((job.record.chain_id, name)))

    def next_due_at(self) -> InstantMs | None:
        return min((job.record.available_at for job in self.state.in_place(Place.SCHEDULED)), default=None)

    def _seen(self, job: ModelJob, now: InstantMs) -> JobRecord | Tombstone | None:
        expires_at = job.record.expires_at
        if expires_at is None or expires_at > now:
            return self._record(job, now)
        tombstone = Tombstone(job.record.id, job.record.operation, expires_at)
        return tombstone if job.tombstone_until > now else None

    def _record(self, job: ModelJob, now: InstantMs) -> JobRecord:
        record = job.record
        info, expires_at = record.result, record.result_expires_at
        if info is None:
            return record
        is_inline = (
            job.result is not None
            and info.content_type == "application/json"
            and info.size_bytes <= limits.INLINE_RESULT_BYTES_MAX
            and expires_at is not None
            and expires_at > now
        )
        inline = job.result.body if is_inline and job.result is not None else None
        return structs.replace(record, result=ResultInfo(info.content_type, info.size_bytes, inline))


def _is_wanted(job: JobRecord, query: JobQuery) -> bool:
    return (
        query.operation in (None, job.operation)
        and query.status in (None, job.status)
        and (query.before is None or job.id < query.before)
    )
