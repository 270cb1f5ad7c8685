"""When a rescuer may trust the ends of leases, which are instants of the database's clock."""

from coatcheck.core.job import InstantMs
from coatcheck.store.clock import Clock

JUMP_PART_OF_LEASE = 4


class LeaseWatch:
    """Holds rescues back while silence may be the database's own fault.

    While it was away nobody could keep a lease, and when its clock is set every lease seems to end at once, or never.
    After either, each lease gets its whole time again.
    """

    def __init__(self, lease_s: float, clock: Clock) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._last: tuple[InstantMs, float] | None = None
        self._held_until_s = float("-inf")
        self.was_set_back = False
        """Whether the database's clock was set back since the look before."""

    @property
    def lease_ms(self) -> int:
        return round(self._lease_s * 1000)

    @property
    def may_rescue(self) -> bool:
        return self._clock.monotonic_s() >= self._held_until_s

    def note(self, database_ms: InstantMs, started_ms: InstantMs, failed_at_s: float | None) -> None:
        """What a look showed: the database's clock, since when it runs, and when it last could not be reached."""
        now_s = self._clock.monotonic_s()
        up_s = (database_ms - started_ms) / 1000
        # A start in the future was before the clock was set back.
        if 0 <= up_s < self._lease_s:
            self._hold_until(now_s + self._lease_s - up_s)
        if failed_at_s is not None:
            self._hold_until(failed_at_s + self._lease_s)
        jump_s = 0.0 if self._last is None else (database_ms - self._last[0]) / 1000 - (now_s - self._last[1])
        if abs(jump_s) > self._lease_s / JUMP_PART_OF_LEASE:
            self._hold_until(now_s + self._lease_s)
        self.was_set_back = jump_s < -self._lease_s / JUMP_PART_OF_LEASE
        self._last = (database_ms, now_s)

    def _hold_until(self, until_s: float) -> None:
        self._held_until_s = max(self._held_until_s, until_s)
