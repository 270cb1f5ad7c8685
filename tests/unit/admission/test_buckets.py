"""Token buckets: never more than the rate and one burst, and nothing remembered of a full one."""

import math

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.admission.buckets import Draw, LocalBuckets
from coatcheck.core.bucket import BucketSize, bucket_size
from coatcheck.testing.clock import ManualClock


def draw(tenant: str, rate: float, burst: float | None = None) -> Draw:
    return Draw(("submit_rate", tenant, ""), bucket_size(rate, burst))


@given(
    rate=st.floats(0.1, 1_000),
    burst=st.floats(1, 500),
    pauses=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 40)), min_size=1, max_size=30),
)
def test_never_more_than_the_rate_and_one_burst(rate: float, burst: float, pauses: list[tuple[float, int]]) -> None:
    clock = ManualClock()
    buckets, drawn, taken = LocalBuckets(clock), draw("t", rate, burst), 0
    for pause_s, tries in pauses:
        clock.advance(pause_s)
        taken += sum(buckets.take_now([drawn]) for _ in range(tries))
        assert taken <= burst + rate * clock.monotonic_s() + 0.001


@given(rate=st.floats(0.01, 1_000), burst=st.floats(1, 100))
def test_the_advice_to_wait_is_right_and_no_longer_than_it_has_to_be(rate: float, burst: float) -> None:
    clock = ManualClock()
    buckets, drawn = LocalBuckets(clock), draw("t", rate, burst)
    while buckets.take_now([drawn]):
        pass
    _, wait_s = drawn.size.outlook(buckets.missing([drawn])[0])
    assert wait_s <= 1 / rate + 0.001
    clock.advance(max(wait_s * 0.98 - 1e-5, 0))
    assert wait_s < 0.001 or not buckets.take_now([drawn])
    clock.advance(wait_s * 0.02 + 2e-5)
    assert buckets.take_now([drawn])


def test_buckets_that_are_full_again_are_forgotten() -> None:
    clock = ManualClock()
    buckets = LocalBuckets(clock)
    for number in range(20_000):
        buckets.take_now([draw(f"tenant-{number}", 100)])
        clock.advance(0.001)
    assert len(buckets) < 100


def test_a_token_given_back_can_be_taken_again_and_no_bucket_overflows() -> None:
    buckets, drawn = LocalBuckets(ManualClock()), draw("t", 1)
    assert buckets.take_now([drawn])
    buckets.give_back([drawn])
    buckets.give_back([drawn])
    assert [buckets.take_now([drawn]) for _ in range(2)] == [True, False]


def test_a_bucket_of_nothing() -> None:
    for size in (bucket_size(0, None), bucket_size(5, 0)):
        assert not size.allows(0)
        assert (size.quota, size.outlook(0)) == (0, (0, math.inf))


def test_a_burst_of_less_than_one_is_one() -> None:
    assert bucket_size(0.2, None) == BucketSize(0.2, 1)
    assert bucket_size(9, 0.5) == BucketSize(9, 1)
