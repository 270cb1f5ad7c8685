"""What a runner saw, and why its handler was told to stop, as the outcome that is stored."""

from typing import assert_never

from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.outcome import OVERDUE, Cancelled, Failed, Outcome, Released, ResultBody, RetryLater, Succeeded
from coatcheck.execution.frames import AskedRetry, NotMine, Raised, Returned, Stopped, Verdict
from coatcheck.execution.held import StopReason

TIMEOUT = ErrorInfo(ErrorCategory.TIMEOUT, "The attempt took longer than its operation allows.")
UNASKED_STOP = ErrorInfo(
    ErrorCategory.HANDLER_ERROR, "The work failed; it is not known why.", operator_detail="stopped without being asked"
)
NOT_MINE_DELAY_S = 10.0


def outcome_of(verdict: Verdict, reason: StopReason | None, limit: ErrorInfo | None = None) -> Outcome:
    """A handler that returned has done its work. However else it ended, the reason to stop it outweighs its verdict.

    `limit`: with LIMIT as the reason, which one.
    """
    if isinstance(verdict, Returned):
        return Succeeded(ResultBody(verdict.content_type, verdict.body, verdict.file_name))
    if reason is not None:
        return outcome_of_reason(reason, limit)
    match verdict:
        case Raised():
            error = ErrorInfo(verdict.category, verdict.detail, verdict.code, verdict.operator_detail)
            return Failed(error, verdict.is_retryable)
        case AskedRetry():
            return RetryLater(verdict.delay_s)
        case Stopped():
            return Failed(UNASKED_STOP, is_retryable=True)
        case NotMine():
            return Released(NOT_MINE_DELAY_S)
        case _:
            assert_never(verdict)


def outcome_of_reason(reason: StopReason, limit: ErrorInfo | None) -> Outcome:
    """The outcome of an attempt that ended because it was told to, or was fenced off as it did not."""
    match reason:
        case StopReason.CANCEL:
            return Cancelled()
        case StopReason.TIMEOUT:
            return Failed(TIMEOUT, is_retryable=True)
        case StopReason.DEADLINE:
            return Failed(OVERDUE, is_retryable=False)
        case StopReason.LIMIT:
            assert limit is not None, "who stops a handler at a limit says at which"
            return Failed(limit, is_retryable=False)
        case StopReason.RELEASE | StopReason.LOST:
            return Released()
        case _:
            assert_never(reason)
