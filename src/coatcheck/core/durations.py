"""Durations as people write them: "2m", 90, timedelta(hours=1)."""

import math
import re
from datetime import timedelta
from typing import TypeAlias

Duration: TypeAlias = str | int | float | timedelta

_TEXT = re.compile(r"([0-9]+(?:[.][0-9]+)?)\s*(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(duration: Duration) -> float:
    """The duration in seconds.

    Raises:
        ValueError: it is negative, not finite, or a text other than a number and one of ms, s, m, h, d.
    """
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, str):
        match = _TEXT.fullmatch(duration.strip())
        if match is None:
            raise ValueError(f'{duration!r} is not a duration; write a number and a unit, such as "90s", "2m" or "7d"')
        value = float(match[1]) * _UNIT_S[match[2]]
    elif isinstance(duration, bool):
        raise ValueError(f"{duration!r} is not a duration")
    else:
        value = float(duration)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{duration!r} is not a duration; it must be zero or more")
    return value
