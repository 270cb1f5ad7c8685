"""Durations as people write them."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.durations import Duration, seconds


@pytest.mark.parametrize(
    ("duration", "expected_s"),
    [
        ("90s", 90),
        ("2m", 120),
        ("1.5h", 5400),
        ("7d", 604_800),
        ("250ms", 0.25),
        ("0s", 0),
        (" 2 m ", 120),
        (90, 90),
        (0, 0),
        (0.5, 0.5),
        (timedelta(hours=1, seconds=1), 3601),
    ],
)
def test_these_are_durations(duration: Duration, expected_s: float) -> None:
    assert seconds(duration) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    "duration",
    [
        "",
        "2",
        "m",
        "-1s",
        "2 weeks",
        "1h30m",
        "1e3s",
        "2M",
        "٢m",
        "2m\n2m",
        -1,
        -0.001,
        math.nan,
        math.inf,
        "9" * 400 + "d",
        True,
        False,
        timedelta(seconds=-1),
    ],
    ids=lambda duration: repr(duration)[:20],
)
def test_these_are_refused(duration: Duration) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(duration)


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_timedelta_is_its_seconds(duration: timedelta) -> None:
    assert seconds(duration) == duration.total_seconds()


@given(st.integers(0, 10**6), st.sampled_from([("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]))
def test_a_text_is_its_number_of_units(number: int, unit: tuple[str, float]) -> None:
    name, unit_s = unit
    assert seconds(f"{number}{name}") == seconds(f"{number} {name}") == pytest.approx(number * unit_s)
