"""Units, windows, and what a job may spend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core import limits
from coatcheck.core.costs import (
    ONE,
    Budget,
    Cap,
    SpendTotals,
    budget,
    declared_budgets,
    left_after,
    millionths,
    units_of,
    window_of,
)
from coatcheck.core.errors import ErrorCategory, ErrorInfo

DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("units", "kept"),
    [(0, 0), (1, ONE), (0.1, 100_000), (0.000_000_4, 0), (0.000_000_6, 1), (limits.UNITS_MAX, limits.UNITS_MAX * ONE)],
)
def test_units_are_kept_in_millionths(units: float, kept: int) -> None:
    assert millionths(units) == kept


@given(st.lists(st.integers(0, 10**7), max_size=50))
def test_sums_are_exact_in_any_order(parts: list[int]) -> None:
    assert sum(millionths(part / 100) for part in reversed(parts)) == sum(parts) * ONE // 100


@given(st.integers(0, 10**15))
def test_amounts_are_read_as_they_were_meant(amount: int) -> None:
    read = units_of(amount)
    assert millionths(read) == amount
    assert isinstance(read, int) == (amount % ONE == 0)


@given(st.integers(0, 4_102_444_800_000), st.sampled_from([60.0, 3600.0, 86_400.0, 604_800.0]))
def test_windows_follow_each_other_without_a_gap(now: int, length_s: float) -> None:
    window = window_of(now, length_s)
    assert window.began_at <= now < window.ends_at
    assert window_of(window.ends_at - 1, length_s) == window
    assert window_of(window.ends_at, length_s).began_at == window.ends_at


def test_a_day_begins_at_midnight_utc() -> None:
    noon = 1_767_614_400_000
    assert window_of(noon, 86_400.0).began_at == noon - DAY_MS // 2


def test_a_cap_is_reached_and_then_passed() -> None:
    assert left_after("calls", 3 * ONE, (), SpendTotals(2 * ONE)) == ONE
    assert left_after("calls", 3 * ONE, (), SpendTotals(3 * ONE)) == 0
    error = left_after("calls", 3 * ONE, (), SpendTotals(3 * ONE + 1))
    assert isinstance(error, ErrorInfo)
    assert (error.category, error.code) == (ErrorCategory.LIMIT_EXCEEDED, "spend-max")


def test_without_a_cap_nothing_bounds_a_job() -> None:
    assert left_after("calls", None, (), SpendTotals(10**15)) is None


def test_the_least_that_is_left_is_what_is_left() -> None:
    caps = (Cap("reports", 10 * ONE), Cap("", 30 * ONE))
    totals = SpendTotals(by_job=ONE, in_operation=9 * ONE, by_tenant=28 * ONE)
    assert left_after("calls", 4 * ONE, caps, totals) == ONE
    assert left_after("calls", None, caps[1:], totals) == 2 * ONE
    for passed in (totals._replace(in_operation=10 * ONE + 1), totals._replace(by_tenant=30 * ONE + 1)):
        error = left_after("calls", 4 * ONE, caps, passed)
        assert isinstance(error, ErrorInfo)
        assert error.code == "budget-exceeded"


@pytest.mark.parametrize(
    ("text", "kind", "units", "window_s"),
    [
        ("10000 tokens / 1d", "tokens", 10_000, 86_400),
        ("10_000 tokens/1d", "tokens", 10_000, 86_400),
        (" 2.5 eur / 1h ", "eur", 2.5, 3600),
        ("0 calls / 1m", "calls", 0, 60),
        ("1 calls / 31d", "calls", 1, 31 * 86_400),
    ],
)
def test_budgets_are_read(text: str, kind: str, units: float, window_s: float) -> None:
    assert budget(text) == Budget(kind, units, window_s)


@pytest.mark.parametrize(
    "text", ["", "10 tokens", "tokens / 1d", "-1 tokens / 1d", "1 Tokens / 1d", "1 a / 59s", "1 a / 90s", "1 a / 32d"]
)
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        budget(text)


def test_a_kind_has_one_budget() -> None:
    with pytest.raises(ValueError, match="each of another kind"):
        declared_budgets(["1 a / 1d", "2 a / 1d"])
