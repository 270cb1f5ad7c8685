"""What follows from the end of an attempt, told a second time and independently of core/outcome.py."""

from dataclasses import dataclass, replace

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.job import InstantMs
from coatcheck.core.outcome import (
    LOST,
    OVERDUE,
    RAN_TOO_LONG,
    Cancelled,
    Failed,
    Lost,
    Outcome,
    Released,
    ResultBody,
    RetryLater,
    Succeeded,
)
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status
from coatcheck.testing.model_state import ModelJob

_GAVE_UP = ErrorInfo(ErrorCategory.HANDLER_ERROR, "The work asked to be tried again later and may not.")


@dataclass(slots=True)
class Verdict:
    """How an attempt ended: with `status` None the job waits until `available_at` for its next one."""

    outcome: str
    counted: int
    status: Status | None = None
    available_at: InstantMs = 0
    error: ErrorInfo | None = None
    result: ResultBody | None = None
    is_dead_letter: bool = False
    crashes: int = 0
    is_alone: bool = False


def judge(job: ModelJob, outcome: Outcome, policy: Policy, now: InstantMs, jitter: float) -> Verdict:
    """The verdict on a running job's attempt."""
    verdict = _judge(job, outcome, policy, now, jitter)
    if verdict.status is None and _has_run_too_long(job, policy, now):
        why = verdict.error
        detail = None if why is None else why.operator_detail or why.detail
        verdict.error = replace(RAN_TOO_LONG, operator_detail=detail)
        verdict.status, verdict.is_dead_letter = Status.FAILED, True
    if job.record.cancel_requested and verdict.status is not Status.SUCCEEDED:
        verdict.status, verdict.is_dead_letter = Status.CANCELLED, False
    return verdict


def _judge(job: ModelJob, outcome: Outcome, policy: Policy, now: InstantMs, jitter: float) -> Verdict:
    counted = job.record.counted_attempts
    verdict = Verdict("", counted, crashes=job.crashes)
    match outcome:
        case Succeeded(result):
            verdict.outcome, verdict.status, verdict.result = "succeeded", Status.SUCCEEDED, result
        case Cancelled():
            verdict.outcome, verdict.status = "cancelled", Status.CANCELLED
        case Failed(error, is_retryable):
            verdict.outcome, verdict.error = "failed", error
            delay_s = _backoff_s(policy, counted, jitter)
            _wait_or_fail(job, verdict, now + round(delay_s * 1000), is_retryable)
        case RetryLater(delay_s):
            verdict.outcome, verdict.error = "retry_later", _GAVE_UP
            _wait_or_fail(job, verdict, now + round(delay_s * 1000), True)
        case Released(delay_s):
            verdict.outcome, verdict.counted = "released", counted - 1
            verdict.available_at, verdict.is_alone = now + round(delay_s * 1000), job.is_alone
        case Lost():
            _lose(job, outcome, verdict, policy, (now, jitter))
    return verdict


def _has_run_too_long(job: ModelJob, policy: Policy, now: InstantMs) -> bool:
    """All its attempts together, the one that ends now included."""
    if policy.processing_max_s is None:
        return False
    ended = ((attempt.started_at, attempt.finished_at or 0) for attempt in job.attempts)
    ran_ms = sum(max(end - start, 0) for start, end in [*ended, (job.attempt_started_at, now)])
    return ran_ms >= policy.processing_max_s * 1000


def _wait_or_fail(job: ModelJob, verdict: Verdict, available_at: InstantMs, is_retryable: bool) -> None:
    deadline_at = job.record.deadline_at
    is_over = verdict.counted >= job.record.max_attempts or (deadline_at is not None and deadline_at <= available_at)
    if is_over or not is_retryable:
        verdict.status, verdict.is_dead_letter = Status.FAILED, True
    else:
        verdict.available_at = available_at


def _lose(job: ModelJob, lost: Lost, verdict: Verdict, policy: Policy, moment: tuple[InstantMs, float]) -> None:
    now, jitter = moment
    deadline_at = job.record.deadline_at
    verdict.outcome, verdict.error, verdict.crashes = "worker_lost", LOST, job.crashes + 1
    verdict.is_alone = lost.is_suspect
    if not lost.is_blamed:
        verdict.counted -= 1
    if verdict.counted >= job.record.max_attempts or verdict.crashes >= limits.CRASHES_MAX:
        verdict.status, verdict.is_dead_letter = Status.FAILED, True
    elif deadline_at is not None and deadline_at <= now:
        verdict.status, verdict.is_dead_letter, verdict.error = Status.FAILED, True, OVERDUE
    else:
        delay_s = _backoff_s(policy, max(verdict.counted, 1), jitter) if lost.is_blamed else 0.0
        verdict.available_at = now + round(delay_s * 1000)


def _backoff_s(policy: Policy, retry: int, jitter: float) -> float:
    backoff = policy.backoff
    ceiling_s = min(backoff.max_s, backoff.first_s * backoff.factor ** (retry - 1))
    return ceiling_s * jitter


def rescue_window(policy: Policy, counted: int, now: InstantMs) -> tuple[InstantMs, InstantMs]:
    """Between which instants a rescued job may become ready: how long its backoff is, nobody can know."""
    return now, now + round(_backoff_s(policy, max(counted, 1), 1.0) * 1000)
