"""What an attempt came to, and what follows from it: decided here, written by the store.

`settle` is the one place that knows the rules of retry, crash counting, cancellation and deadlines.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status


@dataclass(frozen=True, slots=True)
class ResultBody:
    """The bytes a handler returned."""

    content_type: str
    body: bytes
    file_name: str | None = None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""

    result: ResultBody


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, timed out, or its result could not be kept."""

    error: ErrorInfo
    is_retryable: bool


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The handler asked to be tried again after `delay_s` seconds. It counts as an attempt."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The attempt stopped because its job was told to."""


@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives the job back, through no fault of the job: it does not count. It waits `delay_s` first."""

    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Lost:
    """The process died under the attempt, or its lease ran out.

    `is_blamed`: the start counts, because the job was alone in the runner that died or nobody can tell (a lost
    lease). `is_suspect`: the job may have brought its runner down, so its next start is in a runner of its own;
    there only the crash cap bounds starts that do not count.
    """

    is_blamed: bool
    is_suspect: bool


Outcome: TypeAlias = Succeeded | Failed | RetryLater | Cancelled | Released | Lost


@dataclass(frozen=True, slots=True)
class Tally:
    """The counters of the attempt that ends, as its lease row holds them.

    `ran_ms`: how long the job has run in all its attempts, this one included; only told where its policy limits that.
    """

    attempt: int
    counted_attempts: int
    max_attempts: int
    crashes: int
    is_alone: bool
    deadline_at: InstantMs | None
    is_cancel_requested: bool
    ran_ms: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The job ends here. `outcome` is what its attempt is recorded as."""

    status: Status
    outcome: str
    counted_attempts: int
    error: ErrorInfo | None = None
    result: ResultBody | None = None
    is_dead_letter: bool = False


@dataclass(frozen=True, slots=True)
class Requeue:
    """The job waits for another start."""

    available_at: InstantMs
    outcome: str
    counted_attempts: int
    crashes: int
    is_alone: bool = False
    error: ErrorInfo | None = None


Settlement: TypeAlias = Finish | Requeue

LOST = ErrorInfo(ErrorCategory.WORKER_LOST, "The process that ran this attempt was lost.")
OVERDUE = ErrorInfo(ErrorCategory.DEADLINE_EXCEEDED, "The deadline passed before the work was done.", code="deadline")
NEVER_STARTED = ErrorInfo(
    ErrorCategory.DEADLINE_EXCEEDED,
    "The work could not be started in the time its operation allows.",
    code="queue-limit",
)
RAN_TOO_LONG = ErrorInfo(
    ErrorCategory.LIMIT_EXCEEDED,
    "All attempts together took longer than the operation allows.",
    code="processing-max",
)


def settle(outcome: Outcome, tally: Tally, policy: Policy, now: InstantMs, jitter: float) -> Settlement:
    """Decide what an attempt's outcome means for its job. `jitter` is a random number in [0, 1).

    A request to cancel that was stored before wins over every outcome but success: work that is done is done.
    """
    match outcome:
        case Succeeded(result):
            return Finish(Status.SUCCEEDED, "succeeded", tally.counted_attempts, result=result)
        case Cancelled():
            return Finish(Status.CANCELLED, "cancelled", tally.counted_attempts)
        case Failed(error, is_retryable):
            settlement = _failed(error, is_retryable, tally, policy, now, jitter)
        case RetryLater(delay_s):
            error = ErrorInfo(ErrorCategory.HANDLER_ERROR, "The work asked to be tried again later and may not.")
            settlement = _retry("retry_later", error, delay_s, tally, now)
        case Released(delay_s):
            settlement = _released(delay_s, tally, now)
        case Lost():
            settlement = _lost(outcome, tally, policy, now, jitter)
        case _:
            assert_never(outcome)
    if isinstance(settlement, Requeue) and _has_run_long_enough(tally, policy):
        settlement = _used_up(settlement)
    if tally.is_cancel_requested:
        return Finish(Status.CANCELLED, settlement.outcome, settlement.counted_attempts, error=settlement.error)
    return settlement


def _has_run_long_enough(tally: Tally, policy: Policy) -> bool:
    return policy.processing_max_s is not None and tally.ran_ms >= policy.processing_max_s * 1000


def _used_up(again: Requeue) -> Finish:
    """No time is left for the next start. Why this one did not do it stays for the operator to read."""
    why = again.error
    error = RAN_TOO_LONG if why is None else replace(RAN_TOO_LONG, operator_detail=why.operator_detail or why.detail)
    return Finish(Status.FAILED, again.outcome, again.counted_attempts, error=error, is_dead_letter=True)


def _failed(
    error: ErrorInfo, is_retryable: bool, tally: Tally, policy: Policy, now: InstantMs, jitter: float
) -> Settlement:
    if not is_retryable:
        return Finish(Status.FAILED, "failed", tally.counted_attempts, error=error, is_dead_letter=True)
    return _retry("failed", error, policy.backoff.delay_s(tally.counted_attempts, jitter), tally, now)


def _retry(outcome: str, error: ErrorInfo, delay_s: float, tally: Tally, now: InstantMs) -> Settlement:
    available_at = now + round(delay_s * 1000)
    if tally.counted_attempts >= tally.max_attempts or tally.attempt >= limits.STARTS_MAX:
        return Finish(Status.FAILED, outcome, tally.counted_attempts, error=error, is_dead_letter=True)
    if tally.deadline_at is not None and available_at >= tally.deadline_at:
        return Finish(Status.FAILED, outcome, tally.counted_attempts, error=error, is_dead_letter=True)
    return Requeue(available_at, outcome, tally.counted_attempts, tally.crashes, error=error)


def _released(delay_s: float, tally: Tally, now: InstantMs) -> Settlement:
    if tally.attempt >= limits.STARTS_MAX:
        return Finish(Status.FAILED, "released", tally.counted_attempts - 1, error=LOST, is_dead_letter=True)
    available_at = now + round(delay_s * 1000)
    # A suspect stays one: it was given back before it could prove its innocence.
    return Requeue(available_at, "released", tally.counted_attempts - 1, tally.crashes, is_alone=tally.is_alone)


def _lost(lost: Lost, tally: Tally, policy: Policy, now: InstantMs, jitter: float) -> Settlement:
    crashes = tally.crashes + 1
    counted = tally.counted_attempts if lost.is_blamed else tally.counted_attempts - 1
    if counted >= tally.max_attempts or crashes >= limits.CRASHES_MAX or tally.attempt >= limits.STARTS_MAX:
        return Finish(Status.FAILED, "worker_lost", counted, error=LOST, is_dead_letter=True)
    if tally.deadline_at is not None and now >= tally.deadline_at:
        return Finish(Status.FAILED, "worker_lost", counted, error=OVERDUE, is_dead_letter=True)
    delay_s = policy.backoff.delay_s(max(counted, 1), jitter) if lost.is_blamed else 0.0
    return Requeue(now + round(delay_s * 1000), "worker_lost", counted, crashes, is_alone=lost.is_suspect, error=LOST)
