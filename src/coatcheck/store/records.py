"""The frozen records the store's verbs take and return; those made for every job are structs, which cost less."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from coatcheck.core import limits
from coatcheck.core.costs import Charge, Millionths, OverBudget, Purse, Window
from coatcheck.core.job import InstantMs, JobRecord, Progress
from coatcheck.core.outcome import Outcome
from coatcheck.core.policy import Policy
from coatcheck.core.quotas import Limit
from coatcheck.core.starts import Starts, Turn
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS, Terms

# --- acceptance -------------------------------------------------------------------------------------------


class IdempotencyKey(Struct, frozen=True):
    """A client's retry key with the fingerprint of the body it came with."""

    key: str
    algorithm: str
    fingerprint: str
    expires_at: InstantMs


class Submission(Struct, frozen=True):
    """A valid request on its way to its one commit. `payload` is the body as received: UTF-8 JSON.

    `limits`: the most jobs that may be queued of its tenant, in the operation and over all, where there is a limit.
    `charges`: what its job costs the tenant, with the budgets into which that has to fit.
    """

    job_id: str
    tenant: str
    operation: str
    operation_version: str
    payload: bytes
    created_at: InstantMs
    available_at: InstantMs
    deadline_at: InstantMs | None
    priority: int
    max_attempts: int
    correlation_id: str
    traceparent: str | None = None
    key: IdempotencyKey | None = None
    limits: tuple[Limit, ...] = ()
    charges: tuple[Charge, ...] = ()

    @property
    def is_delayed(self) -> bool:
        """Whether the job may not start at once."""
        return self.available_at > self.created_at


def purses_of(submission: Submission) -> Iterator[Purse]:
    """What has to be known of budgets before it can be accepted."""
    for charge in submission.charges:
        for cap in charge.caps:
            yield submission.tenant, charge.kind, charge.window, cap.operation


class Accepted(Struct, frozen=True):
    """A new job, durable now."""

    job: JobRecord


class Replayed(Struct, frozen=True):
    """The key was used for the same body before: this is its job as it stands now."""

    job: JobRecord


class KeyConflict(Struct, frozen=True):
    """The key was used for another body."""

    job_id: str


class KeyOfExpiredJob(Struct, frozen=True):
    """The key was used for the same body, and its job has expired since."""

    job_id: str


class QueueFull(Struct, frozen=True):
    """As many of the tenant's jobs are queued as the limit lets in; its key is still free."""

    limit: Limit
    queued: int


Disposition: TypeAlias = Accepted | Replayed | KeyConflict | KeyOfExpiredJob | QueueFull | OverBudget

# --- claims -----------------------------------------------------------------------------------------------


class Lease(Struct, frozen=True):
    """The exclusive right to one attempt. Every write of a worker names it, and the store compares all of it."""

    job_id: str
    attempt: int
    token: str


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a worker can take now. `slots` bounds the answer; an operation's share of it by `slots_by_operation`.

    `terms`: those that hold for tenants. `shares`: the most jobs of an operation that one tenant may have with this
    worker at once, where that is bounded; `here`: how many it has, by operation and tenant.
    """

    worker_id: str
    slots: int
    slots_by_operation: Mapping[str, int]
    policies: Mapping[str, Policy]
    terms: Terms = ANY_TERMS
    shares: Mapping[str, int] = field(default_factory=dict)
    here: Mapping[Turn, int] = field(default_factory=dict)

    def starts(self) -> Starts:
        """Whose jobs this claim may start."""
        return Starts(self.terms, self.shares, self.here)


class Claim(Struct, frozen=True):
    """One attempt handed to a worker. `is_alone`: it must run in a runner of its own.

    `ran_ms`: how long the attempts before it ran; only told where the operation's policy limits that.
    """

    lease: Lease
    job: JobRecord
    payload: bytes
    is_alone: bool
    ran_ms: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """The jobs claimed, and when the next job not yet due becomes due (None: none is waiting).

    `is_crowded`: others were just claiming for tenants with a limit, which were passed over; ask again in a moment.
    """

    claims: Sequence[Claim]
    next_due_at: InstantMs | None
    is_crowded: bool = False


class Beat(Struct, frozen=True):
    """A heartbeat: the lease goes on; `progress` replaces what is stored when it is given."""

    lease: Lease
    progress: Progress | None = None


class BeatAnswer(StrEnum):
    """What the worker must do after a heartbeat."""

    GO_ON = "go_on"
    CANCEL = "cancel"
    LOST = "lost"


class Spending(Struct, frozen=True):
    """Units of a kind that an attempt spends, counted in its tenant's `window` as well. `number` rises with every
    spend of the attempt: a repeat of one that may have been stored has its number, and is counted once.

    `whose`: the job's tenant and operation, for the order in which an engine takes its locks. The lease decides.
    """

    lease: Lease
    number: int
    kind: str
    units: Millionths
    window: Window
    whose: tuple[str, str] = ("", "")


class Finishing(Struct, frozen=True):
    """An attempt's outcome on its way to the store. `jitter` is a random number in [0, 1) for the backoff.

    `is_limited`: a limit on running jobs holds for its tenant, whose turns may be held for as long as it runs.
    """

    lease: Lease
    outcome: Outcome
    policy: Policy
    jitter: float
    is_limited: bool = False


class Finished(Struct, frozen=True):
    """Where the job stands after its attempt: a final status, or queued again."""

    job: JobRecord


# --- reading and clients' verbs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an expired or erased job."""

    job_id: str
    operation: str
    expired_at: InstantMs


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The bytes of a result."""

    content_type: str
    body: bytes
    file_name: str | None


@dataclass(frozen=True, slots=True)
class JobQuery:
    """A page of one tenant's jobs, newest first. `before` is the id of the last job of the page before."""

    tenant: str
    limit: int
    operation: str | None = None
    status: Status | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page; `has_more` tells whether another follows."""

    jobs: Sequence[JobRecord]
    has_more: bool


class CancelDisposition(StrEnum):
    """What a request to cancel did."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    ALREADY_CANCELLED = "already_cancelled"
    ALREADY_FINISHED = "already_finished"


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """What a request to cancel did, and the job after it."""

    disposition: CancelDisposition
    job: JobRecord


class EraseDisposition(StrEnum):
    """What a request to erase did."""

    ERASED = "erased"
    NOT_FINISHED = "not_finished"
    ALREADY_GONE = "already_gone"


@dataclass(frozen=True, slots=True)
class Redriving:
    """A failed job to run again as a new one. Its chain and priority carry over, its deadline does not.

    `payload` stands in the place of the old one where it is given.
    """

    tenant: str
    job_id: str
    new_job_id: str
    created_at: InstantMs
    payload: bytes | None = None


class RedriveRefusal(StrEnum):
    """Why a job was not redriven."""

    NOT_FOUND = "not_found"
    NOT_FAILED = "not_failed"
    TENANT_REVOKED = "tenant_revoked"


class TenantQueue(Struct, frozen=True):
    """A tenant's ready jobs in one operation: how many, and when the first and the last in line were created.

    `last_priority` is that of the last: no job in line has a greater number.
    """

    tenant: str
    ready: int
    first_created_at: InstantMs
    last_created_at: InstantMs
    last_priority: int


@dataclass(frozen=True, slots=True)
class QueueMeasure:
    """What one operation's queue is doing. Instants in ms, durations in seconds, None where nothing was seen yet.

    `runs` is how many attempts that ended lately the mean `recent_run_s` and the standard deviation `run_spread_s` are
    of. `tenants` are those with ready jobs, at most TENANTS_MEASURED_MAX of them.
    """

    operation: str
    ready: int
    scheduled: int
    running: int
    oldest_ready_at: InstantMs | None
    recent_run_s: float | None
    runs: int = 0
    run_spread_s: float = 0.0
    tenants: Sequence[TenantQueue] = ()


# --- upkeep -------------------------------------------------------------------------------------------------


class Prunable(StrEnum):
    """What retention removes, each by its own time."""

    RESULTS = "results"
    JOBS = "jobs"
    TOMBSTONES = "tombstones"
    KEYS = "keys"
    SPENDING = "spending"
    API_KEYS = "api-keys"
    AUDIT = "audit"

    @property
    def kept_ms(self) -> int:
        """For how long it stays after its end, where that is the same for all."""
        return _KEPT_S.get(self, 0) * 1000


_KEPT_S = {
    Prunable.SPENDING: limits.SPENDING_KEPT_S,
    Prunable.API_KEYS: limits.API_KEY_KEPT_S,
    Prunable.AUDIT: limits.AUDIT_KEPT_S,
}


@dataclass(frozen=True, slots=True)
class HeldTurns:
    """A look at turns that are held: the last one looked at (None: there were no more), and how many came back."""

    last: Turn | None
    restored: int


@dataclass(frozen=True, slots=True)
class Promotion:
    """How many due jobs became ready, and when the next one is due (None: none is waiting)."""

    count: int
    next_due_at: InstantMs | None


# --- wake-ups -----------------------------------------------------------------------------------------------


class WakeUpKind(StrEnum):
    """What a hint is about."""

    READY = "ready"
    SCHEDULED = "scheduled"
    CHANGED = "changed"
    CANCEL = "cancel"
    OUTBOX = "outbox"
    CONTROLS = "controls"


@dataclass(frozen=True, slots=True)
class WakeUp:
    """A hint that may be lost, doubled or late. `job_ids` names the jobs of CHANGED and CANCEL, else it is empty."""

    kind: WakeUpKind
    job_ids: Sequence[str] = ()
