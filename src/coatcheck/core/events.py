"""What other channels are told about a job: one event for each stored change of status."""

from dataclasses import dataclass
from enum import StrEnum

from coatcheck.core.job import InstantMs


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
