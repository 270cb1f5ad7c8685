"""A clock that moves only when it is told to."""

from coatcheck.core.job import InstantMs

START_MS: InstantMs = 1_767_600_000_000
"""2026-01-05T08:00:00Z, where a ManualClock starts unless told otherwise."""


class ManualClock:
    """Both clocks of the product, moved by hand: together by `advance`, the wall clock alone by `set_wall`.

    Args:
        wall_ms: where the wall clock starts, in ms since 1970.
    """

    def __init__(self, wall_ms: InstantMs = START_MS) -> None:
        self._wall_us = wall_ms * 1_000
        self._monotonic_us = 0

    def now_us(self) -> int:
        return self._wall_us

    def now(self) -> InstantMs:
        return self._wall_us // 1_000

    def monotonic_s(self) -> float:
        return self._monotonic_us / 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks.

        Raises:
            ValueError: the seconds are negative; only a wall clock can step back, see `set_wall`.
        """
        if seconds < 0:
            raise ValueError(f"time cannot pass backwards by {seconds} s")
        passed_us = round(seconds * 1_000_000)
        self._wall_us += passed_us
        self._monotonic_us += passed_us

    def set_wall(self, wall_ms: InstantMs) -> None:
        """Make the wall clock jump, forwards or back, while no time passes."""
        self._wall_us = wall_ms * 1_000
