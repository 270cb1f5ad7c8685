"""A job as operators see it: whose it is, its place in its chain, and what went wrong in full."""

from typing import Any

from coatcheck.completion.representation import error_fields, instant, progress_fields, represent_attempt
from coatcheck.core.errors import ErrorInfo
from coatcheck.core.job import AttemptRecord, JobRecord


def operator_fields(job: JobRecord) -> dict[str, Any]:
    """The job's fields, ready for JSON."""
    result = job.result
    return {
        "id": job.id,
        "tenant": job.tenant,
        "operation": job.operation,
        "operation_version": job.operation_version,
        "status": job.status.value,
        "version": job.version,
        "attempt": job.attempt,
        "counted_attempts": job.counted_attempts,
        "max_attempts": job.max_attempts,
        "priority": job.priority,
        "progress": progress_fields(job.progress),
        "created_at": instant(job.created_at),
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "updated_at": instant(job.updated_at),
        "available_at": instant(job.available_at),
        "deadline_at": instant(job.deadline_at),
        "expires_at": instant(job.expires_at),
        "dead_lettered_at": instant(job.dead_lettered_at),
        "cancel_requested": job.cancel_requested,
        "cancel_reason": job.cancel_reason,
        "error": _error(job.error),
        "correlation_id": job.correlation_id,
        "chain_id": job.chain_id,
        "redrive_of": job.redrive_of,
        "redriven_as": job.redriven_as,
        "result_type": None if result is None else result.content_type,
        "result_bytes": None if result is None else result.size_bytes,
    }


def operator_attempt_fields(attempt: AttemptRecord) -> dict[str, Any]:
    """One start of a job, ready for JSON."""
    return {**represent_attempt(attempt), "error": _error(attempt.error)}


def _error(error: ErrorInfo | None) -> dict[str, Any] | None:
    fields = error_fields(error)
    return None if error is None or fields is None else {**fields, "operator_detail": error.operator_detail}
