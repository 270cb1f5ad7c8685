"""Backoff: bounded, rising, spread."""

import math

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.backoff import Backoff

_BACKOFFS = st.builds(
    Backoff,
    first_s=st.floats(0, 3600),
    factor=st.floats(1, 100),
    max_s=st.floats(0, 7 * 24 * 3600),
)
_RETRIES = st.integers(1, 999)
_JITTER = st.floats(0, 1, exclude_max=True)


@given(_BACKOFFS, _RETRIES, _JITTER)
def test_a_delay_is_within_its_bounds(backoff: Backoff, retry: int, jitter: float) -> None:
    delay_s = backoff.delay_s(retry, jitter)
    assert math.isfinite(delay_s)
    assert 0 <= delay_s <= backoff.ceiling_s(retry) <= backoff.max_s


@given(_BACKOFFS, _RETRIES)
def test_ceilings_never_fall(backoff: Backoff, retry: int) -> None:
    assert backoff.ceiling_s(retry) <= backoff.ceiling_s(retry + 1)


@given(_BACKOFFS)
def test_the_last_retries_are_as_finite_as_the_first(backoff: Backoff) -> None:
    assert backoff.ceiling_s(999) == backoff.ceiling_s(998)


def test_the_default_doubles_from_a_second_to_five_minutes() -> None:
    ceilings = [Backoff().ceiling_s(retry) for retry in range(1, 12)]
    assert ceilings == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_retries_that_fail_together_spread_over_the_whole_wait() -> None:
    delays_s = [Backoff().delay_s(9, n / 500) for n in range(500)]
    assert max(delays_s) - min(delays_s) > 0.99 * 256
    for second in range(256):
        assert sum(second <= delay_s < second + 1 for delay_s in delays_s) <= 2
