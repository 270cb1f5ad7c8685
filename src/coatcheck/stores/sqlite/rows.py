"""From rows to records: no row leaves the engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import AttemptRecord, JobRecord, Progress, ResultInfo
from coatcheck.core.starts import Turn
from coatcheck.core.states import Status

Row: TypeAlias = tuple[Any, ...]

_NO_ERROR: Row = (None, None, None, None)


class Place(NamedTuple):
    """Whose job it is and where it stands among the others."""

    operation: str
    tenant: str
    priority: int
    job_id: str

    @property
    def turn(self) -> Turn:
        """In whose turn it starts."""
        return self.operation, self.tenant


class Fixed(NamedTuple):
    """What of an open job never moves, in the order of next_ready's columns."""

    operation_version: str
    max_attempts: int
    created_at: int
    deadline_at: int | None
    correlation_id: str
    traceparent: str | None
    chain_id: str
    redrive_of: str | None


class Moving(NamedTuple):
    """What moves with an open job through ready, scheduled and lease."""

    available_at: int
    version: int
    attempt: int
    counted_attempts: int
    crashes: int
    is_alone: bool
    started_at: int | None
    updated_at: int

    def changed(self, now: int) -> "Moving":
        """The same, one version later."""
        return self._replace(version=self.version + 1, updated_at=now)

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Moving":
        available_at, version, attempt, counted, crashes, is_alone, started_at, updated_at = row
        return cls(available_at, version, attempt, counted, crashes, bool(is_alone), started_at, updated_at)


class EndedLease(msgspec.Struct, frozen=True, array_like=True):
    """A row of open_leases, with its job's: who deletes the lease writes what follows."""

    job_id: str
    attempt: int
    token: str
    operation: str
    tenant: str
    priority: int
    available_at: int
    version: int
    counted_attempts: int
    crashes: int
    is_alone: int
    started_at: int
    attempt_started_at: int
    cancel_requested: int
    cancel_reason: str | None
    operation_version: str
    max_attempts: int
    created_at: int
    deadline_at: int | None
    correlation_id: str
    traceparent: str | None
    chain_id: str
    redrive_of: str | None

    @property
    def place(self) -> Place:
        """Where its job stood."""
        return Place(self.operation, self.tenant, self.priority, self.job_id)

    @property
    def fixed(self) -> Fixed:
        """What of its job never moves."""
        return Fixed(
            self.operation_version,
            self.max_attempts,
            self.created_at,
            self.deadline_at,
            self.correlation_id,
            self.traceparent,
            self.chain_id,
            self.redrive_of,
        )


def fixed_of(job: JobRecord) -> Fixed:
    """What does not move of a job that was read."""
    return Fixed(
        job.operation_version,
        job.max_attempts,
        job.created_at,
        job.deadline_at,
        job.correlation_id,
        job.traceparent,
        job.chain_id,
        job.redrive_of,
    )


def job_from_parts(place: Place, fixed: Fixed, moving: Moving, status: Status, **end: Any) -> JobRecord:
    """A job whose parts are at hand: saves reading back what was just written. `end` holds the fields of its end."""
    return JobRecord(
        place.job_id,
        place.tenant,
        place.operation,
        fixed.operation_version,
        status,
        moving.version,
        moving.attempt,
        moving.counted_attempts,
        fixed.max_attempts,
        place.priority,
        fixed.created_at,
        moving.updated_at,
        moving.available_at,
        fixed.correlation_id,
        fixed.chain_id,
        moving.started_at,
        deadline_at=fixed.deadline_at,
        traceparent=fixed.traceparent,
        redrive_of=fixed.redrive_of,
        **end,
    )


def job_from_row(row: Row) -> JobRecord:
    """A row of find_job or find_any_job."""
    (
        *head, progress_fraction, progress_message, cancel_requested, cancel_reason,
        category, detail, code, operator_detail, dead_lettered_at, traceparent, redrive_of, redriven_as,
        result_type, result_bytes, inline,
    ) = row  # fmt: skip
    return JobRecord(
        id=head[0],
        tenant=head[1],
        operation=head[2],
        operation_version=head[3],
        status=Status(head[4]),
        version=head[5],
        attempt=head[6],
        counted_attempts=head[7],
        max_attempts=head[8],
        priority=head[9],
        created_at=head[10],
        updated_at=head[11],
        available_at=head[12],
        correlation_id=head[13],
        chain_id=head[14],
        started_at=head[15],
        finished_at=head[16],
        deadline_at=head[17],
        expires_at=head[18],
        result_expires_at=head[19],
        progress=progress_from(progress_fraction, progress_message),
        cancel_requested=bool(cancel_requested),
        cancel_reason=cancel_reason,
        error=error_from(category, detail, code, operator_detail),
        dead_lettered_at=dead_lettered_at,
        traceparent=traceparent,
        redrive_of=redrive_of,
        redriven_as=redriven_as,
        result=None if result_type is None else ResultInfo(result_type, result_bytes, inline),
    )


def progress_from(fraction: float | None, message: str | None) -> Progress | None:
    """No progress was told where both parts are NULL."""
    return None if fraction is None and message is None else Progress(fraction, message)


def error_from(category: str | None, detail: str, code: str | None, operator_detail: str | None) -> ErrorInfo | None:
    """The error of a failed job or attempt."""
    return None if category is None else ErrorInfo(ErrorCategory(category), detail, code, operator_detail)


def error_values(error: ErrorInfo | None) -> Row:
    """The four error columns."""
    if error is None:
        return _NO_ERROR
    return error.category.value, error.detail, error.code, error.operator_detail


def attempt_from_row(row: Row) -> AttemptRecord:
    """A row of list_attempts."""
    return AttemptRecord(row[0], row[1], row[2], row[3], error_from(row[4], row[5], row[6], row[7]))
