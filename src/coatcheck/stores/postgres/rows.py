"""From rows to records and back to columns: no row leaves the engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import AttemptRecord, JobRecord, Progress, ResultInfo
from coatcheck.core.starts import Turn
from coatcheck.core.states import Status
from coatcheck.store.records import Submission

Row: TypeAlias = Sequence[Any]

FIXED_COLUMNS = 8
MOVING_COLUMNS = 8


def columns(rows: Sequence[Row], count: int) -> Sequence[Sequence[Any]]:
    """The values of rows as one array for each of `count` columns, as statements for many rows take them."""
    return list(zip(*rows, strict=True)) if rows else [()] * count


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
    """What of an open job never moves, in the order of the columns that name it."""

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


class EndedLease(NamedTuple):
    """A lease row that was just deleted: who deleted it writes what follows."""

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
    is_alone: bool
    started_at: int
    attempt_started_at: int
    cancel_requested: bool
    cancel_reason: str | None


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


def new_job(submission: Submission) -> JobRecord:
    """The job that a submission becomes, before anything has happened to it."""
    return JobRecord(
        id=submission.job_id,
        tenant=submission.tenant,
        operation=submission.operation,
        operation_version=submission.operation_version,
        status=Status.QUEUED,
        version=1,
        attempt=0,
        counted_attempts=0,
        max_attempts=submission.max_attempts,
        priority=submission.priority,
        created_at=submission.created_at,
        updated_at=submission.created_at,
        available_at=submission.available_at,
        correlation_id=submission.correlation_id,
        chain_id=submission.job_id,
        deadline_at=submission.deadline_at,
        traceparent=submission.traceparent,
    )


def submission_values(submission: Submission) -> Row:
    """A submission in the columns that accept and the inbox have in common."""
    key = submission.key
    return (
        submission.job_id,
        submission.tenant,
        submission.operation,
        submission.operation_version,
        submission.priority,
        submission.max_attempts,
        submission.created_at,
        submission.available_at,
        submission.deadline_at,
        plain(submission.correlation_id),
        plain(submission.traceparent),
        submission.payload,
        None if key is None else key.key,
        None if key is None else key.algorithm,
        None if key is None else key.fingerprint,
        None if key is None else key.expires_at,
    )


def inbox_values(submission: Submission) -> Row:
    """A submission in the columns of the inbox."""
    costs = [(charge.kind, charge.units) for charge in submission.charges]
    return *submission_values(submission), msgspec.json.encode(costs).decode() if costs else None


def job_from_row(row: Row) -> JobRecord:
    """The columns of a job, in the order of find_jobs and list_jobs."""
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
        cancel_requested=cancel_requested,
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


def error_values(error: ErrorInfo | None) -> tuple[str | None, str | None, str | None, str | None]:
    """The four error columns."""
    if error is None:
        return None, None, None, None
    return error.category.value, plain(error.detail), plain(error.code), plain(error.operator_detail)


Text = TypeVar("Text", str, None, str | None)


def plain(text: Text) -> Text:
    """Text as PostgreSQL can hold it: without the character NUL, which no encoding of it has."""
    return text if text is None else text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def attempt_from_row(row: Row) -> AttemptRecord:
    """A row of list_attempts."""
    return AttemptRecord(row[0], row[1], row[2], row[3], error_from(row[4], row[5], row[6], row[7]))
