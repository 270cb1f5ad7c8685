"""A machine whose clocks a test holds in its hands: uptime goes on, the wall clock is set."""

from coatcheck.store.clock import Machine
from coatcheck.testing.clock import START_MS

NS = 1_000_000_000
UPTIME_NS = 86_400 * NS


class FakeMachine:
    """`pass_time` moves everything, `set_wall_by` the wall clock alone."""

    def __init__(self, uptime_ns: int = UPTIME_NS) -> None:
        self._uptime_ns = uptime_ns
        self._offset_ns = START_MS * 1_000_000 - uptime_ns
        self._is_frozen = False
        self.clocks = Machine(lambda: self._uptime_ns + self._offset_ns, lambda: self._uptime_ns, lambda: self.uptime_s)

    @property
    def uptime_s(self) -> float:
        return self._uptime_ns / NS

    @property
    def wall_ms(self) -> int:
        return (self._uptime_ns + self._offset_ns) // 1_000_000

    def pass_time(self, seconds: float) -> None:
        passed_ns = round(seconds * NS)
        self._uptime_ns += passed_ns
        if self._is_frozen:
            self._offset_ns -= passed_ns

    def set_wall_by(self, seconds: float) -> None:
        self._offset_ns += round(seconds * NS)

    def freeze_wall(self) -> None:
        """The wall clock stands still from now on."""
        self._is_frozen = True
