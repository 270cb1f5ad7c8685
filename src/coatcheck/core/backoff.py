"""How long a failed job waits before its next attempt."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter: the n-th retry waits between 0 and min(first * factor^(n-1), max) seconds."""

    first_s: float = 1.0
    factor: float = 2.0
    max_s: float = 300.0

    def ceiling_s(self, retry: int) -> float:
        """The longest wait in seconds before retry number `retry` (from 1)."""
        exponent = min(retry - 1, 64)
        return min(self.first_s * self.factor**exponent, self.max_s)

    def delay_s(self, retry: int, jitter: float) -> float:
        """The wait in seconds before retry `retry`, for a random `jitter` in [0, 1)."""
        return self.ceiling_s(retry) * jitter
