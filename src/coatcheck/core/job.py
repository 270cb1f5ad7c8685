"""The job record as every reader sees it, whatever tables an engine keeps it in.

What is made for every request is a struct: a frozen dataclass takes ten times as long to make.
"""

from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.states import Status

InstantMs: TypeAlias = int
"""A moment: milliseconds since 1970-01-01T00:00:00Z."""


class Progress(Struct, frozen=True):
    """How far an attempt is: a fraction from 0 to 1 (None where only a message is known) and a short message."""

    fraction: float | None
    message: str | None


class ResultInfo(Struct, frozen=True):
    """What is stored as a result. `inline` holds the bytes only of JSON small enough to stand in the job."""

    content_type: str
    size_bytes: int
    inline: bytes | None = None


class JobRecord(Struct, frozen=True):
    """One accepted job. Instants are in ms; `attempt` numbers the starts, `counted_attempts` those that count."""

    id: str
    tenant: str
    operation: str
    operation_version: str
    status: Status
    version: int
    attempt: int
    counted_attempts: int
    max_attempts: int
    priority: int
    created_at: InstantMs
    updated_at: InstantMs
    available_at: InstantMs
    correlation_id: str
    chain_id: str
    started_at: InstantMs | None = None
    finished_at: InstantMs | None = None
    deadline_at: InstantMs | None = None
    expires_at: InstantMs | None = None
    result_expires_at: InstantMs | None = None
    progress: Progress | None = None
    cancel_requested: bool = False
    cancel_reason: str | None = None
    error: ErrorInfo | None = None
    dead_lettered_at: InstantMs | None = None
    traceparent: str | None = None
    redrive_of: str | None = None
    redriven_as: str | None = None
    result: ResultInfo | None = None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One start of a job. `outcome` is None while it runs."""

    number: int
    started_at: InstantMs
    finished_at: InstantMs | None
    outcome: str | None
    error: ErrorInfo | None
