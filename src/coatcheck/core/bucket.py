"""A token bucket in numbers: tokens come in at a rate, up to a burst, and whatever is let through takes one.

What is kept of a bucket is how much is missing from a full one. One that is full again is like one never used, so
that nobody has to remember it; and what is missing stays missing when the rate or the burst is changed.
"""

import math
from typing import Final, NamedTuple

# Seconds since some start, in floating point: a token may be this much short and is one all the same.
_SHORTAGE: Final = 1e-6


class BucketSize(NamedTuple):
    """Tokens that come in each second, and the most a bucket holds: both 0 where nothing is ever let through."""

    rate: float
    burst: float

    @property
    def is_shut(self) -> bool:
        """Whether it never lets anything through."""
        return self.rate <= 0

    @property
    def window_s(self) -> int:
        """Whole seconds in which it fills up: for those who think in windows."""
        return 1 if self.is_shut else max(1, math.ceil(self.burst / self.rate))

    @property
    def quota(self) -> int:
        """What comes in within `window_s`."""
        return 0 if self.is_shut else max(1, math.floor(self.rate * self.window_s))

    def missing_after(self, missing: float, passed_s: float) -> float:
        """What is missing once some time has passed; a size that was changed meanwhile holds for all of it."""
        burst = self.burst
        left = (missing if missing < burst else burst) - (passed_s * self.rate if passed_s > 0 else 0.0)
        return left if left > 0 else 0.0

    def allows(self, missing: float) -> bool:
        """Whether there is a token."""
        return self.burst - missing >= 1 - _SHORTAGE

    def outlook(self, missing: float) -> tuple[int, float]:
        """How many may be taken at once, and in how many seconds one more; infinite where none ever comes."""
        rate, left = self.rate, self.burst - missing
        tokens = int(left + _SHORTAGE) if left > 0 else 0
        return tokens, math.inf if rate <= 0 else (tokens + 1 - left) / rate


def bucket_size(rate: float, burst: float | None) -> BucketSize:
    """The bucket of a rate: without a burst of its own it holds what comes in within a second, and at least one."""
    if rate <= 0 or (burst is not None and burst <= 0):
        return BucketSize(0.0, 0.0)
    return BucketSize(rate, max(1.0, rate if burst is None else burst))
