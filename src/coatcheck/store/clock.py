"""Time from one place. Every process asks the clock it was given, never the system directly."""

import time
from typing import Protocol

from coatcheck.core.job import InstantMs


class Clock(Protocol):
    """Wall time for what is told to people, monotonic time for everything that is measured."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        ...

    def now(self) -> InstantMs:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic_s(self) -> float:
        """Seconds on a clock that never steps."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def now(self) -> InstantMs:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
