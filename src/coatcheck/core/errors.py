"""The error a failed job or attempt carries: what a client may read, and what only the operator may."""

from dataclasses import dataclass
from enum import StrEnum


class ErrorCategory(StrEnum):
    """Why a job failed, as one decision its client can take."""

    INVALID_INPUT = "invalid_input"
    HANDLER_ERROR = "handler_error"
    DEPENDENCY_UNAVAILABLE = "dependency_unavailable"
    LIMIT_EXCEEDED = "limit_exceeded"
    TIMEOUT = "timeout"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    WORKER_LOST = "worker_lost"
    RESULT_TOO_LARGE = "result_too_large"
    RESULT_NOT_STORABLE = "result_not_storable"
    TENANT_REVOKED = "tenant_revoked"


HANDLER_CATEGORIES = frozenset(
    {
        ErrorCategory.INVALID_INPUT,
        ErrorCategory.HANDLER_ERROR,
        ErrorCategory.DEPENDENCY_UNAVAILABLE,
        ErrorCategory.LIMIT_EXCEEDED,
    }
)

TITLES: dict[ErrorCategory, str] = {
    ErrorCategory.INVALID_INPUT: "The input cannot be processed",
    ErrorCategory.HANDLER_ERROR: "The work failed",
    ErrorCategory.DEPENDENCY_UNAVAILABLE: "Something this work depends on is not available",
    ErrorCategory.LIMIT_EXCEEDED: "The work went over a limit",
    ErrorCategory.TIMEOUT: "The attempt took too long",
    ErrorCategory.DEADLINE_EXCEEDED: "The deadline passed",
    ErrorCategory.WORKER_LOST: "The worker was lost",
    ErrorCategory.RESULT_TOO_LARGE: "The result is too large",
    ErrorCategory.RESULT_NOT_STORABLE: "The result cannot be stored",
    ErrorCategory.TENANT_REVOKED: "The tenant was revoked",
}


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """One failure. `operator_detail` (exception text, traceback) is never shown to a client."""

    category: ErrorCategory
    detail: str
    code: str | None = None
    operator_detail: str | None = None

    @property
    def title(self) -> str:
        return TITLES[self.category]
