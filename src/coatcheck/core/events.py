"""What other channels are told about a job: one event for each stored change of status."""

import json
from dataclasses import dataclass
from enum import StrEnum

from coatcheck.core.job import InstantMs, JobRecord


class EventType(StrEnum):
    """The `type` of a CloudEvent about a job."""

    ACCEPTED = "coatcheck.job.accepted"
    STARTED = "coatcheck.job.started"
    REQUEUED = "coatcheck.job.requeued"
    SUCCEEDED = "coatcheck.job.succeeded"
    FAILED = "coatcheck.job.failed"
    CANCELLED = "coatcheck.job.cancelled"


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One event still to be told. `seq` orders the entries of one job; (`job_id`, `version`) never repeats."""

    seq: int
    type: EventType
    job_id: str
    tenant: str
    operation: str
    version: int
    occurred_at: InstantMs
    correlation_id: str
    data: bytes


def event_data(job: JobRecord) -> bytes:
    """The `data` of an event: thin JSON that names the job and says where it stands, never payload or result."""
    error = None
    if job.error is not None:
        error = {"category": job.error.category, "code": job.error.code, "detail": job.error.detail}
    data = {
        "id": job.id,
        "operation": job.operation,
        "tenant": job.tenant,
        "status": job.status,
        "version": job.version,
        "attempt": job.attempt,
        "error": error,
        "cancel_reason": job.cancel_reason,
        "redrive_of": job.redrive_of,
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
