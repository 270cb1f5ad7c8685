"""The exceptions a handler ends its attempt with, besides any other it may raise."""

from coatcheck.core import limits
from coatcheck.core.durations import Duration, seconds
from coatcheck.core.errors import HANDLER_CATEGORIES, ErrorCategory
from coatcheck.execution.texts import clean_line


class JobError(Exception):
    """The work failed for a reason its client may know.

    Args:
        category: `invalid_input`, `handler_error`, `dependency_unavailable` or `limit_exceeded`.
        detail: one sentence for the client, cut to 1,000 characters.
        retryable: whether another attempt may help. Without it the job fails at once.
        code: your own short code for the client, cut to 64 characters.

    Raises:
        ValueError: the category is not one of the four.
    """

    def __init__(
        self, category: ErrorCategory | str, detail: str, retryable: bool = False, code: str | None = None
    ) -> None:
        super().__init__(category, detail)
        if category not in HANDLER_CATEGORIES:
            allowed = ", ".join(sorted(HANDLER_CATEGORIES))
            raise ValueError(f"{category!r} is not a category of a handler; the categories are {allowed}")
        self.category = ErrorCategory(category)
        self.detail = clean_line(str(detail), limits.ERROR_DETAIL_CHARS_MAX)
        self.retryable = bool(retryable)
        self.code = None if code is None else clean_line(str(code), limits.ERROR_CODE_CHARS_MAX)


class RetryLater(Exception):
    """Try the job again after a delay of the handler's choice. It counts as an attempt.

    Args:
        delay: "30s", seconds or timedelta; at most a year.

    Raises:
        ValueError: the delay is not a duration.
    """

    def __init__(self, delay: Duration) -> None:
        super().__init__(delay)
        self.delay_s = min(seconds(delay), float(limits.RETRY_LATER_S_MAX))
