"""A job as its client sees it: the fields of the contract, its URLs, and the tag of each version of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from coatcheck.core import limits
from coatcheck.core.errors import ErrorInfo
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord, Progress
from coatcheck.core.states import Status

_FIRST_VERSION = 1
REPRESENTATION_REVISION = 1
"""Raised whenever the same record is represented differently, so that no client keeps an old form."""


@dataclass(frozen=True, slots=True)
class JobUrls:
    """Where one job is read, collected and cancelled."""

    status_url: str
    result_url: str
    cancel_url: str


class UrlBook:
    """Builds URLs below one prefix: a mount point such as `/jobs`, a public URL, or nothing.

    `represent` writes a job with its URLs; what is alike in all new jobs of an operation it has written before.
    """

    def __init__(self, prefix: str, paths: Mapping[str, str]) -> None:
        self.prefix = prefix
        self._collections = {operation: prefix + path for operation, path in paths.items()}
        self._new_jobs: dict[str, bytes] = {}

    def collection_url(self, operation: str) -> str:
        """The collection of an operation. One this build does not know is taken to stand at its default path."""
        return self._collections.get(operation) or f"{self.prefix}/v1/{operation}"

    def status_url(self, operation: str, job_id: str) -> str:
        return f"{self.collection_url(operation)}/{job_id}"

    def of(self, job: JobRecord) -> JobUrls:
        """All URLs of a job."""
        status_url = self.status_url(job.operation, job.id)
        return JobUrls(status_url, status_url + "/result", status_url + "/cancel")

    def represent(self, job: JobRecord) -> bytes:
        """The job as UTF-8 JSON."""
        if not _is_new(job) or job.operation not in self._collections:
            return represent(job, self.of(job))
        template = self._new_jobs.get(job.operation)
        if template is None:
            template = self._new_jobs[job.operation] = _new_job_template(job, self.of(job))
        return template % _new_job_values(job)


def represent(job: JobRecord, urls: JobUrls) -> bytes:
    """The job as UTF-8 JSON."""
    return orjson.dumps(fields_of(job, urls))


def _is_new(job: JobRecord) -> bool:
    """Whether the job is as a submission made it."""
    return job.version == _FIRST_VERSION and job.status is Status.QUEUED and job.redrive_of is None


def _new_job_template(job: JobRecord, urls: JobUrls) -> bytes:
    """The representation of a new job, with a format in place of each value that differs from job to job."""
    fields = fields_of(job, urls)
    for name in ("max_attempts", "created_at", "updated_at", "available_at", "deadline_at", "correlation_id"):
        fields[name] = orjson.Fragment(f"%({name})b")
    fields["id"] = orjson.Fragment('"%(id)b"')
    for name in ("status_url", "result_url", "cancel_url"):
        url = orjson.dumps(fields[name]).replace(b"%", b"%%")
        fields[name] = orjson.Fragment(url.replace(job.id.encode("ascii"), b"%(id)b"))
    return orjson.dumps(fields)


def _new_job_values(job: JobRecord) -> dict[bytes, bytes]:
    return {
        b"id": job.id.encode("ascii"),
        b"max_attempts": b"%d" % job.max_attempts,
        b"created_at": _instant_text(job.created_at),
        b"updated_at": _instant_text(job.updated_at),
        b"available_at": _instant_text(job.available_at),
        b"deadline_at": _instant_text(job.deadline_at),
        b"correlation_id": orjson.dumps(job.correlation_id),
    }


def represent_attempt(attempt: AttemptRecord) -> dict[str, Any]:
    """One start of a job, ready for orjson."""
    return {
        "number": attempt.number,
        "started_at": instant(attempt.started_at),
        "finished_at": instant(attempt.finished_at),
        "outcome": attempt.outcome,
        "error": error_fields(attempt.error),
    }


def etag(job: JobRecord) -> str:
    """The strong entity tag of the job's representation. An inline result that expires changes it without a version."""
    return _etag(job.version, job.result is not None and job.result.inline is not None)


@lru_cache(maxsize=256)
def _etag(version: int, has_inline: bool) -> str:
    return f'"v{version}-r{REPRESENTATION_REVISION}{"-i" if has_inline else ""}"'


def instant(at: InstantMs | None) -> str | None:
    """RFC 3339 in UTC with milliseconds and `Z`."""
    if at is None:
        return None
    # A retention of ages must not make its job unreadable.
    seconds, ms = divmod(min(at, limits.INSTANT_MS_MAX), 1000)
    return f"{_second(seconds)}.{ms:03d}Z"


@lru_cache(maxsize=1024)
def _instant_text(at: InstantMs | None) -> bytes:
    return orjson.dumps(instant(at))


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def fields_of(job: JobRecord, urls: JobUrls) -> dict[str, Any]:
    """The job's fields, ready for orjson."""
    fields: dict[str, Any] = {
        "id": job.id,
        "operation": job.operation,
        "status": job.status,
        "done": job.status.is_final,
        "version": job.version,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": progress_fields(job.progress),
        "created_at": instant(job.created_at),
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "updated_at": instant(job.updated_at),
        "available_at": instant(job.available_at),
        "deadline_at": instant(job.deadline_at),
        "expires_at": instant(job.expires_at),
        "result_expires_at": instant(job.result_expires_at),
        "cancel_requested": job.cancel_requested,
        "cancel_reason": job.cancel_reason,
        "error": error_fields(job.error),
        "correlation_id": job.correlation_id,
        "redrive_of": job.redrive_of,
        "redriven_as": job.redriven_as,
        "status_url": urls.status_url,
        "result_url": urls.result_url,
        "cancel_url": urls.cancel_url,
    }
    if job.status is Status.SUCCEEDED and job.result is not None:
        fields["result_type"] = job.result.content_type
        fields["result_bytes"] = job.result.size_bytes
        if job.result.inline is not None:
            fields["result"] = orjson.Fragment(job.result.inline)
    return fields


def progress_fields(progress: Progress | None) -> dict[str, Any] | None:
    """How far a job is, ready for orjson."""
    return None if progress is None else {"fraction": progress.fraction, "message": progress.message}


def error_fields(error: ErrorInfo | None) -> dict[str, Any] | None:
    """Why a job or an attempt failed, as far as its client may know, ready for orjson."""
    if error is None:
        return None
    return {"category": error.category, "code": error.code, "title": error.title, "detail": error.detail}
