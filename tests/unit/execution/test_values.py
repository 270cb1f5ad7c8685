"""Texts, verdicts, progress and effects as plain values."""

import math
from typing import Any

import pytest

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import Progress
from coatcheck.core.outcome import RAN_TOO_LONG, Cancelled, Failed, Outcome, Released, Succeeded
from coatcheck.core.outcome import RetryLater as Later
from coatcheck.execution.frames import AskedRetry, NotMine, Raised, Returned, Stopped, Verdict
from coatcheck.execution.held import StopReason
from coatcheck.execution.job import BlockingJob, JobFacts
from coatcheck.execution.outcomes import NOT_MINE_DELAY_S, outcome_of
from coatcheck.execution.recorded import decode_effect, encode_effect
from coatcheck.execution.texts import clean_line, operator_detail
from coatcheck.execution.verdicts import JobError, RetryLater
from coatcheck.testing.clock import ManualClock

RETURNED = Returned("application/json", b"1", None)
RAISED = Raised(ErrorCategory.HANDLER_ERROR, "It failed.", True, None, None)


class Line:
    """A job's line that ends here."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.is_stopped = False
        self.reported: list[Progress] = []
        self.effects: dict[str, bytes] = {}
        self.asked: list[tuple[str, bool]] = []
        self.spent: list[tuple[str, float]] = []

    def report_progress(self, progress: Progress) -> None:
        self.reported.append(progress)

    async def ask_effect(self, name: str, value: bytes | None) -> bytes | None:
        return self.call_effect(name, value)

    def call_effect(self, name: str, value: bytes | None) -> bytes | None:
        self.asked.append((name, value is not None))
        return self.effects.get(name) if value is None else self.effects.setdefault(name, value)

    async def ask_spend(self, kind: str, units: float) -> float | None:
        return self.call_spend(kind, units)

    def call_spend(self, kind: str, units: float) -> float | None:
        self.spent.append((kind, units))
        return None


def job(line: Line, attempt: int = 1, chain_id: str = "job_a", deadline_at: int | None = None) -> BlockingJob:
    return BlockingJob(JobFacts("job_a", attempt, chain_id, "default", "reports", "corr", deadline_at), line)


@pytest.mark.parametrize(
    ("done", "total", "fraction"),
    [(1, 4, 0.25), (0.5, None, 0.5), (9, 4, 1.0), (-1, 4, 0.0), (0, 0, 1.0), (None, 4, None), (math.nan, 1, None)],
)
def test_progress_is_a_fraction(done: float | None, total: float | None, fraction: float | None) -> None:
    line = Line()
    job(line).progress(done, total, "a\x00b" * 100)
    (progress,) = line.reported
    assert progress.fraction == fraction
    assert len(progress.message or "") == limits.PROGRESS_MESSAGE_CHARS_MAX


def test_the_deadline_counts_down_to_zero() -> None:
    line = Line()
    assert (job(line).deadline, job(line).seconds_left) == (None, None)
    with_deadline = job(line, deadline_at=line.clock.now() + 1500)
    assert with_deadline.seconds_left == 1.5
    assert job(line, deadline_at=line.clock.now() - 1).seconds_left == 0.0
    assert with_deadline.deadline is not None
    assert with_deadline.deadline.utcoffset() is not None


def test_a_first_attempt_looks_nothing_up() -> None:
    line = Line()
    assert job(line).effect("pay", lambda: (1, 2)) == [1, 2]
    assert line.asked == [("pay", True)]


@pytest.mark.parametrize(("attempt", "chain_id"), [(2, "job_a"), (1, "job_first")])
def test_a_later_attempt_and_a_redrive_look_up_what_was_recorded(attempt: int, chain_id: str) -> None:
    line = Line()
    line.effects["pay"] = b'"recorded"'
    assert job(line, attempt, chain_id).effect("pay", lambda: pytest.fail("done again")) == "recorded"
    assert line.asked == [("pay", False)]


def test_an_effect_called_twice_is_done_once() -> None:
    line = Line()
    running = job(line)
    values = iter([None, None])
    assert [running.effect("pay", lambda: next(values)) for _ in range(2)] == [None, None]
    assert line.asked == [("pay", True)]


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb"])
def test_an_effect_needs_a_printable_name(name: str) -> None:
    with pytest.raises(ValueError, match="An effect's name"):
        job(Line()).effect(name, lambda: 1)
    with pytest.raises(ValueError, match="An effect's name"):
        job(Line()).effect_key(name)


def test_effect_keys_are_of_the_chain_and_the_name() -> None:
    keys = {job(Line(), chain_id=chain).effect_key(name) for chain in ("job_a", "job_b") for name in ("pay", "mail")}
    assert len(keys) == 4
    assert job(Line(), attempt=3).effect_key("pay") == job(Line()).effect_key("pay")


@pytest.mark.parametrize("value", [object(), "x" * limits.EFFECT_BYTES_MAX, "\ud800"])
def test_what_cannot_be_recorded_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"effect|surrogate"):
        encode_effect(value, None)


def test_an_effect_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="An effect must return"):
        encode_effect("many", int)
    assert decode_effect(encode_effect([1], list[int]), list[int]) == [1]


def test_lines_are_clean_and_bounded() -> None:
    assert clean_line(" a\x00\n\tb\ud800\u2028c ", 20) == "a b\ufffd c"
    assert clean_line("x" * 30, 10) == "x" * 9 + "…"


def test_an_operators_detail_is_bounded_and_never_fails() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Unspeakable" in operator_detail(Unspeakable())
    assert len(operator_detail(ValueError("x" * 100_000))) == limits.OPERATOR_DETAIL_CHARS_MAX


def test_a_handler_may_use_its_own_categories_only() -> None:
    error = JobError("invalid_input", "x" * 2000, code="y" * 100)
    assert error.category is ErrorCategory.INVALID_INPUT
    assert (len(error.detail), len(error.code or "")) == (limits.ERROR_DETAIL_CHARS_MAX, limits.ERROR_CODE_CHARS_MAX)
    with pytest.raises(ValueError, match="'timeout' is not a category of a handler"):
        JobError("timeout", "no")


def test_retry_later_takes_a_duration_of_at_most_a_year() -> None:
    assert RetryLater("2m").delay_s == 120
    assert RetryLater("1000d").delay_s == limits.RETRY_LATER_S_MAX
    with pytest.raises(ValueError, match="not a duration"):
        RetryLater("soon")


@pytest.mark.parametrize("reason", [None, *StopReason])
def test_work_that_is_done_is_done(reason: StopReason | None) -> None:
    assert isinstance(outcome_of(RETURNED, reason), Succeeded)


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (AskedRetry(3.0), Later(3.0)),
        (NotMine(), Released(NOT_MINE_DELAY_S)),
    ],
)
def test_a_verdict_nobody_asked_for_is_the_outcome(verdict: Verdict, outcome: Outcome) -> None:
    assert outcome_of(verdict, None) == outcome


@pytest.mark.parametrize("units", [-1, -0.000_001, math.nan, math.inf, limits.UNITS_MAX + 1, True, "1", None])
def test_what_is_no_number_of_units_is_not_spent(units: Any) -> None:
    line = Line()
    with pytest.raises(ValueError, match="is not a number of units"):
        job(line).spend(units)
    assert line.spent == []


@pytest.mark.parametrize("kind", ["", "Calls", "1st", "a b", "a" * 33, "ä", None])
def test_what_names_no_kind_is_not_spent(kind: Any) -> None:
    line = Line()
    with pytest.raises(ValueError, match="is not a kind of units"):
        job(line).spend(1, kind)
    assert line.spent == []


def test_a_job_spends_units_of_a_few_kinds() -> None:
    line = Line()
    spender = job(line)
    for number in range(limits.KINDS_MAX):
        spender.spend(limits.UNITS_MAX, f"kind-{number}")
        spender.spend(0, f"kind-{number}")
    with pytest.raises(ValueError, match="one more"):
        spender.spend()
    assert len(line.spent) == 2 * limits.KINDS_MAX


@pytest.mark.parametrize("verdict", [RAISED, AskedRetry(3.0), Stopped(), NotMine()])
@pytest.mark.parametrize(
    ("reason", "category", "is_retryable"),
    [
        (StopReason.TIMEOUT, ErrorCategory.TIMEOUT, True),
        (StopReason.DEADLINE, ErrorCategory.DEADLINE_EXCEEDED, False),
        (StopReason.LIMIT, ErrorCategory.LIMIT_EXCEEDED, False),
    ],
)
def test_the_time_outweighs_what_a_stopped_handler_says(
    verdict: Verdict, reason: StopReason, category: ErrorCategory, is_retryable: bool
) -> None:
    outcome = outcome_of(verdict, reason, RAN_TOO_LONG if reason is StopReason.LIMIT else None)
    assert isinstance(outcome, Failed)
    assert (outcome.error.category, outcome.is_retryable) == (category, is_retryable)


def test_a_stopped_handler_is_cancelled_or_given_back_as_it_was_asked() -> None:
    assert outcome_of(Stopped(), StopReason.CANCEL) == Cancelled()
    assert outcome_of(RAISED, StopReason.RELEASE) == Released()
    assert isinstance(outcome_of(Stopped(), None), Failed)
