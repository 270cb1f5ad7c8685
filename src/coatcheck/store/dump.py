"""A store's rows in a form that belongs to no engine: what one reads out, another takes in.

What only one engine has, such as a heartbeat's count or the end of a lease, is not among them: it says something about
one place, and whoever takes the rows in begins it anew.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from coatcheck.core import limits

Value: TypeAlias = str | int | float | bool | bytes | None
Record: TypeAlias = tuple[Value, ...]


class Kind(StrEnum):
    """The kinds of rows, each by the name of its table, in the order in which they are copied."""

    JOB = "job"
    PAYLOAD = "payload"
    RESULT = "result"
    ATTEMPT = "attempt"
    EFFECT = "effect"
    KEY = "idempotency_key"
    TOMBSTONE = "tombstone"
    READY = "ready"
    TURN = "turn"
    SCHEDULED = "scheduled"
    LEASE = "lease"
    DEADLINE = "deadline"
    OUTBOX = "outbox"
    JOB_COST = "job_cost"
    SPENDING = "spending"
    TENANT = "tenant"
    API_KEY = "api_key"
    LIMIT = "limit_override"
    MODE = "operation_mode"
    AUDIT = "audit"

    @property
    def rows_at_once(self) -> int:
        """How many rows a batch holds at most, so that its bytes have a bound too."""
        return _ROWS_AT_ONCE.get(self, limits.COPY_ROWS_MAX)


_ROWS_AT_ONCE = {
    Kind.PAYLOAD: limits.COPY_BODIES_MAX,
    Kind.EFFECT: limits.COPY_BODIES_MAX,
    Kind.RESULT: limits.COPY_RESULTS_MAX,
}
_PLACE = ("operation", "tenant", "priority", "job_id")
_COUNTS = ("version", "attempt", "counted_attempts", "crashes", "is_alone")
_ERROR = ("error_category", "error_detail", "error_code", "error_operator_detail")

COLUMNS: Mapping[Kind, Sequence[str]] = {
    Kind.JOB: (
        *("id", "tenant", "operation", "operation_version", "priority", "max_attempts", "created_at", "available_at"),
        *("deadline_at", "correlation_id", "traceparent", "chain_id", "redrive_of", "redriven_as", "key_expires_at"),
        *("status", "version", "attempt", "counted_attempts", "started_at", "updated_at", "finished_at", "expires_at"),
        *("result_expires_at", "tombstone_until", "cancel_requested", "cancel_reason", "dead_lettered_at"),
        *(*_ERROR, "result_type", "result_bytes"),
    ),
    Kind.PAYLOAD: ("job_id", "body"),
    Kind.RESULT: ("job_id", "content_type", "file_name", "expires_at", "body"),
    Kind.ATTEMPT: ("job_id", "number", "started_at", "finished_at", "outcome", *_ERROR),
    Kind.EFFECT: ("chain_id", "name", "value", "recorded_at"),
    Kind.KEY: ("tenant", "operation", "key", "algorithm", "fingerprint", "job_id", "expires_at"),
    Kind.TOMBSTONE: ("job_id", "tenant", "operation", "expired_at", "kept_until"),
    Kind.READY: (*_PLACE, "available_at", *_COUNTS, "started_at", "updated_at"),
    Kind.TURN: ("operation", "tenant", "vstart"),
    Kind.SCHEDULED: (
        *("available_at", "job_id", "operation", "tenant", "priority"),
        *(*_COUNTS, "started_at", "updated_at"),
    ),
    Kind.LEASE: (
        *("job_id", "operation", "tenant", "priority", "token", "worker_id", "available_at", *_COUNTS, "started_at"),
        *("attempt_started_at", "updated_at", "progress_fraction", "progress_message", "cancel_requested"),
        "cancel_reason",
    ),
    Kind.DEADLINE: ("deadline_at", "job_id"),
    Kind.JOB_COST: ("job_id", "kind", "charged", "spent", "attempt", "number", "window_ms", "window_at"),
    Kind.SPENDING: ("tenant", "kind", "window_ms", "window_at", "operation", "charged", "spent"),
    Kind.OUTBOX: ("seq", "type", "job_id", "tenant", "operation", "version", "occurred_at", "correlation_id", "data"),
    Kind.TENANT: (
        *("name", "created_at", "weight", "is_paused", "revocation", "revoked_at", "revocation_done_at"),
        *("by_operation", "restored_at"),
    ),
    Kind.API_KEY: (
        *("key_id", "tenant", "digest", "scopes", "label", "created_at", "expires_at", "revoked_at", "last_used_at"),
        "lifetime_ms",
    ),
    Kind.LIMIT: ("name", "tenant", "operation", "value"),
    Kind.MODE: ("operation", "mode"),
    Kind.AUDIT: ("seq", "at", "actor", "origin", "action", "target", "tenant", "details"),
}
"""What a record holds, in this order. Instants are ms since 1970, bodies bytes; flags are bool in every engine."""

FLAGS = frozenset({"is_alone", "cancel_requested", "is_paused"})


class Dump(Protocol):
    """All that a store holds, while nobody else writes to it."""

    async def count(self) -> Mapping[Kind, int]:
        """How many rows there are of each kind."""
        ...

    def read(self, kind: Kind) -> AsyncIterator[Sequence[Record]]:
        """The rows of one kind in batches, in the order of their key, compared byte by byte."""
        ...


class Load(Dump, Protocol):
    """An empty store that takes in what another held. All of it is there once it is committed, or nothing."""

    async def write(self, kind: Kind, records: Sequence[Record]) -> None:
        """Take in a batch. The kinds come in their order."""
        ...

    async def settle(self) -> None:
        """Write what follows from the rows, when all are there."""
        ...
