"""What other channels are told about a job: one event for each stored change of status."""

from enum import StrEnum
from json.encoder import encode_basestring
from typing import NamedTuple

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.job import InstantMs, JobRecord


class EventType(StrEnum):
    """The `type` of a CloudEvent about a job."""

    ACCEPTED = "coatcheck.job.accepted"
    STARTED = "coatcheck.job.started"
    REQUEUED = "coatcheck.job.requeued"
    SUCCEEDED = "coatcheck.job.succeeded"
    FAILED = "coatcheck.job.failed"
    CANCELLED = "coatcheck.job.cancelled"


class OutboxEntry(NamedTuple):
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
    # Put together by hand: json.dumps takes five times as long, and each change of status needs one.
    return (
        f'{{"id":{encode_basestring(job.id)},"operation":{encode_basestring(job.operation)}'
        f',"tenant":{encode_basestring(job.tenant)},"status":"{job.status.value}","version":{job.version}'
        f',"attempt":{job.attempt},"error":{_error(job.error)},"cancel_reason":{_text(job.cancel_reason)}'
        f',"redrive_of":{_text(job.redrive_of)}}}'
    ).encode()


def _text(text: str | None) -> str:
    return "null" if text is None else encode_basestring(text)


def _error(error: ErrorInfo | None) -> str:
    if error is None:
        return "null"
    return (
        f'{{"category":"{error.category.value}","code":{_text(error.code)},"detail":{encode_basestring(error.detail)}}}'
    )
