"""What an operation promises: how often it is tried, how long it may take and how long its traces are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from coatcheck.core import limits
from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import DEFAULT_KIND, Budget, Cost, Millionths
from coatcheck.core.tenancy import Revocation

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class RunsIn(StrEnum):
    """Where in a runner a handler runs: on its loop, in one of its threads, or in a process of the job's own."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Retention:
    """How long, in seconds from the end of a job, its record stays readable; results may go earlier."""

    succeeded_s: float = 7 * DAY_S
    failed_s: float = 30 * DAY_S
    cancelled_s: float = 7 * DAY_S
    result_s: float = 7 * DAY_S
    tombstone_s: float = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class Policy:
    """The declared behaviour of one operation. Durations are in seconds; None means no limit."""

    max_attempts: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    timeout_s: float | None = 600.0
    queue_limit_s: float | None = HOUR_S
    deadline_default_s: float | None = None
    deadline_max_s: float | None = None
    retention: Retention = field(default_factory=Retention)
    is_key_required: bool = False
    key_window_s: float = DAY_S
    payload_bytes_max: int = limits.PAYLOAD_BYTES_MAX
    result_bytes_max: int = limits.RESULT_BYTES_MAX
    concurrency_max: int | None = None
    processing_max_s: float | None = None
    spend_max: Mapping[str, Millionths] = field(default_factory=dict)
    cost: Mapping[str, Cost] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    priority_min: int = 0
    priority_max: int = limits.PRIORITY_MAX
    runs_in: RunsIn = RunsIn.LOOP
    share_max: float | None = None
    tenant_queued_max: int | None = None
    tenant_running_max: int | None = None
    tenant_submit_rate: float | None = None
    tenant_submit_burst: float | None = None
    submit_rate: float | None = None
    submit_burst: float | None = None
    queue_depth_max: int | None = None
    queue_age_max_s: float | None = None
    on_revoke: Revocation | None = None

    def names_kind(self, kind: str) -> bool:
        """Whether units of this kind are spoken of in the declaration."""
        return kind == DEFAULT_KIND or any(kind in named for named in (self.spend_max, self.cost, self.budgets))


DEFAULT_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one app by operation. A job of an operation this build does not know keeps the defaults."""

    by_operation: Mapping[str, Policy]

    def of(self, operation: str) -> Policy:
        return self.by_operation.get(operation, DEFAULT_POLICY)
