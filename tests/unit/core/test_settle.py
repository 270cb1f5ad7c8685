"""What follows from an outcome: every rule by example, and what must hold whatever comes together."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.backoff import Backoff
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.limits import CRASHES_MAX, STARTS_MAX
from coatcheck.core.outcome import (
    LOST,
    RAN_TOO_LONG,
    Cancelled,
    Failed,
    Finish,
    Lost,
    Outcome,
    Released,
    Requeue,
    ResultBody,
    RetryLater,
    Settlement,
    Succeeded,
    Tally,
    settle,
)
from coatcheck.core.policy import Policy
from coatcheck.core.states import Status

NOW = 1_767_600_000_000
POLICY = Policy(backoff=Backoff(first_s=10, factor=2, max_s=300))
FIRST = Tally(
    attempt=1,
    counted_attempts=1,
    max_attempts=3,
    crashes=0,
    is_alone=False,
    deadline_at=None,
    is_cancel_requested=False,
)
LAST = replace(FIRST, attempt=3, counted_attempts=3)
ONLY = replace(FIRST, max_attempts=1)

ERROR = ErrorInfo(ErrorCategory.DEPENDENCY_UNAVAILABLE, "The stock list did not answer.")
DONE = Succeeded(ResultBody("application/json", b"{}"))
FLAKY = Failed(ERROR, is_retryable=True)
BROKEN = Failed(ERROR, is_retryable=False)
LATER = RetryLater(60)
BACK = Released()
INNOCENT = Lost(is_blamed=False, is_suspect=False)
SUSPECT = Lost(is_blamed=False, is_suspect=True)
EXPIRED = Lost(is_blamed=True, is_suspect=False)
GUILTY = Lost(is_blamed=True, is_suspect=True)


def _settle(outcome: Outcome, tally: Tally, jitter: float = 0.5) -> Settlement:
    return settle(outcome, tally, POLICY, NOW, jitter)


def _at(**changes: Any) -> Tally:
    return replace(FIRST, **changes)


@pytest.mark.parametrize("tally", [FIRST, LAST, ONLY, _at(deadline_at=NOW - 1), _at(is_cancel_requested=True)])
def test_success_is_success_whatever_else_is_true(tally: Tally) -> None:
    settlement = _settle(DONE, tally)
    assert isinstance(settlement, Finish)
    assert (settlement.status, settlement.result, settlement.error) == (Status.SUCCEEDED, DONE.result, None)
    assert not settlement.is_dead_letter


@pytest.mark.parametrize(
    ("outcome", "tally", "wait_s", "counted"),
    [
        (FLAKY, FIRST, 5, 1),
        (FLAKY, _at(attempt=2, counted_attempts=2), 10, 2),
        (FLAKY, _at(attempt=7, counted_attempts=1), 5, 1),
        (FLAKY, _at(deadline_at=NOW + 5_001), 5, 1),
        (LATER, FIRST, 60, 1),
        (LATER, _at(deadline_at=NOW + 60_001), 60, 1),
        (RetryLater(0), FIRST, 0, 1),
        (BACK, FIRST, 0, 0),
        (BACK, LAST, 0, 2),
        (BACK, ONLY, 0, 0),
        (Released(7), ONLY, 7, 0),
        (INNOCENT, ONLY, 0, 0),
        (SUSPECT, LAST, 0, 2),
        (EXPIRED, FIRST, 5, 1),
        (GUILTY, _at(attempt=2, counted_attempts=2), 10, 2),
        (INNOCENT, _at(crashes=CRASHES_MAX - 2), 0, 0),
        (EXPIRED, _at(deadline_at=NOW + 1), 5, 1),
    ],
)
def test_these_wait_for_another_start(outcome: Outcome, tally: Tally, wait_s: float, counted: int) -> None:
    settlement = _settle(outcome, tally)
    assert isinstance(settlement, Requeue)
    assert settlement.available_at == NOW + wait_s * 1000
    assert settlement.counted_attempts == counted
    assert settlement.is_alone is (isinstance(outcome, Lost) and outcome.is_suspect)
    assert settlement.crashes == tally.crashes + isinstance(outcome, Lost)


@pytest.mark.parametrize(
    ("outcome", "tally", "category"),
    [
        (BROKEN, FIRST, ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (FLAKY, LAST, ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (FLAKY, ONLY, ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (FLAKY, _at(deadline_at=NOW + 5_000), ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (FLAKY, _at(deadline_at=NOW - 1), ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (FLAKY, _at(attempt=STARTS_MAX), ErrorCategory.DEPENDENCY_UNAVAILABLE),
        (LATER, LAST, ErrorCategory.HANDLER_ERROR),
        (LATER, _at(deadline_at=NOW + 60_000), ErrorCategory.HANDLER_ERROR),
        (BACK, _at(attempt=STARTS_MAX), ErrorCategory.WORKER_LOST),
        (EXPIRED, LAST, ErrorCategory.WORKER_LOST),
        (GUILTY, ONLY, ErrorCategory.WORKER_LOST),
        (INNOCENT, _at(crashes=CRASHES_MAX - 1), ErrorCategory.WORKER_LOST),
        (SUSPECT, _at(attempt=STARTS_MAX), ErrorCategory.WORKER_LOST),
        (EXPIRED, _at(deadline_at=NOW), ErrorCategory.DEADLINE_EXCEEDED),
        (INNOCENT, _at(deadline_at=NOW - 1), ErrorCategory.DEADLINE_EXCEEDED),
    ],
)
def test_these_are_dead_letters(outcome: Outcome, tally: Tally, category: ErrorCategory) -> None:
    settlement = _settle(outcome, tally)
    assert isinstance(settlement, Finish)
    assert (settlement.status, settlement.is_dead_letter, settlement.result) == (Status.FAILED, True, None)
    assert settlement.error is not None
    assert settlement.error.category is category


@pytest.mark.parametrize("outcome", [FLAKY, BROKEN, LATER, BACK, INNOCENT, SUSPECT, EXPIRED, GUILTY, Cancelled()])
@pytest.mark.parametrize("tally", [FIRST, LAST, ONLY, _at(deadline_at=NOW - 1), _at(attempt=STARTS_MAX)])
def test_a_stored_request_to_cancel_wins(outcome: Outcome, tally: Tally) -> None:
    settlement = _settle(outcome, replace(tally, is_cancel_requested=True))
    assert isinstance(settlement, Finish)
    assert (settlement.status, settlement.is_dead_letter) == (Status.CANCELLED, False)


def test_a_stopped_attempt_is_cancelled_even_if_the_request_is_not_seen() -> None:
    assert _settle(Cancelled(), FIRST).outcome == "cancelled"


def test_the_attempt_keeps_what_happened_to_it() -> None:
    names = {type(outcome): _settle(outcome, FIRST).outcome for outcome in (DONE, FLAKY, LATER, BACK, EXPIRED)}
    assert list(names.values()) == ["succeeded", "failed", "retry_later", "released", "worker_lost"]
    assert _settle(FLAKY, FIRST).error == ERROR
    assert _settle(EXPIRED, FIRST).error == LOST


_INSTANTS = st.none() | st.integers(NOW - 10**6, NOW + 10**6)
_DELAYS = st.floats(0, 1000)
_OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.just(DONE),
    st.builds(Failed, st.just(ERROR), st.booleans()),
    st.builds(RetryLater, _DELAYS),
    st.just(Cancelled()),
    st.builds(Released, _DELAYS),
    st.builds(Lost, st.booleans(), st.booleans()),
)


@st.composite
def _tallies(draw: st.DrawFn) -> Tally:
    max_attempts = draw(st.integers(1, 20))
    counted = draw(st.integers(1, max_attempts))
    return Tally(
        attempt=draw(st.integers(counted, STARTS_MAX)),
        counted_attempts=counted,
        max_attempts=max_attempts,
        crashes=draw(st.integers(0, CRASHES_MAX - 1)),
        is_alone=draw(st.booleans()),
        deadline_at=draw(_INSTANTS),
        is_cancel_requested=draw(st.booleans()),
    )


@given(_OUTCOMES, _tallies(), st.floats(0, 1, exclude_max=True))
def test_whatever_comes_together(outcome: Outcome, tally: Tally, jitter: float) -> None:
    settlement = settle(outcome, tally, POLICY, NOW, jitter)
    assert 0 <= settlement.counted_attempts <= tally.counted_attempts
    if isinstance(settlement, Finish):
        _check_finish(outcome, tally, settlement)
    else:
        _check_requeue(outcome, tally, settlement)


def _check_finish(outcome: Outcome, tally: Tally, finish: Finish) -> None:
    assert (finish.result is not None) is (finish.status is Status.SUCCEEDED) is isinstance(outcome, Succeeded)
    assert finish.is_dead_letter is (finish.status is Status.FAILED)
    if tally.is_cancel_requested:
        assert finish.status is not Status.FAILED
    if finish.status is Status.FAILED:
        assert finish.error is not None


def _check_requeue(outcome: Outcome, tally: Tally, requeue: Requeue) -> None:
    assert not tally.is_cancel_requested
    assert requeue.counted_attempts < tally.max_attempts
    assert tally.attempt < STARTS_MAX
    assert requeue.crashes < CRASHES_MAX
    assert requeue.available_at >= NOW
    if isinstance(outcome, Failed | RetryLater):
        assert requeue.counted_attempts == tally.counted_attempts
        assert tally.deadline_at is None or requeue.available_at < tally.deadline_at


@given(st.lists(_OUTCOMES, max_size=60), st.integers(1, 5))
def test_a_life_is_bounded_and_counts_no_more_starts_than_it_may(outcomes: list[Outcome], max_attempts: int) -> None:
    counted, crashes = 0, 0
    for attempt, outcome in enumerate(outcomes, start=1):
        counted += 1
        assert counted <= max_attempts
        settlement = _settle(outcome, Tally(attempt, counted, max_attempts, crashes, False, None, False))
        if isinstance(settlement, Finish):
            return
        counted, crashes = settlement.counted_attempts, settlement.crashes


def test_a_suspect_that_is_given_back_stays_alone() -> None:
    suspect = replace(FIRST, is_alone=True)
    given_back = _settle(BACK, suspect)
    assert isinstance(given_back, Requeue)
    assert given_back.is_alone
    failed = _settle(FLAKY, suspect)
    assert isinstance(failed, Requeue)
    assert not failed.is_alone


@pytest.mark.parametrize("outcome", [FLAKY, LATER, BACK, INNOCENT, SUSPECT, EXPIRED], ids=repr)
@pytest.mark.parametrize(("ran_ms", "is_over"), [(9_999, False), (10_000, True), (10_001, True)])
def test_nothing_follows_once_the_processing_time_is_used_up(outcome: Outcome, ran_ms: int, is_over: bool) -> None:
    policy = replace(POLICY, processing_max_s=10.0)
    settlement = settle(outcome, replace(FIRST, ran_ms=ran_ms), policy, NOW, 0.5)
    if not is_over:
        assert isinstance(settlement, Requeue)
        return
    assert isinstance(settlement, Finish)
    assert settlement.error is not None
    assert (settlement.status, settlement.is_dead_letter) == (Status.FAILED, True)
    assert (settlement.error.category, settlement.error.code) == (RAN_TOO_LONG.category, RAN_TOO_LONG.code)


def test_a_request_to_cancel_outweighs_time_that_is_used_up() -> None:
    tally = replace(FIRST, ran_ms=10_000, is_cancel_requested=True)
    settlement = settle(FLAKY, tally, replace(POLICY, processing_max_s=10.0), NOW, 0.5)
    assert isinstance(settlement, Finish)
    assert settlement.status is Status.CANCELLED


def test_without_a_limit_any_time_may_be_used() -> None:
    assert isinstance(_settle(FLAKY, replace(FIRST, ran_ms=10**12)), Requeue)
