"""Time from one place. Every process asks the clock it was given, never the system directly.

The wall clock of a machine can be set, and then every stored instant would come too early or too late at once. A
SystemClock follows the wall, but makes a step up slowly, so that waiting work, deadlines and retention go on at
nearly the pace of real time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from coatcheck.core.job import InstantMs

_S = 1_000_000_000
STEP_NS = _S // 4
SLOWNESS = 10
SETTLING_NS = 600 * _S
ADJUSTED_NS = 48 * 3600 * _S
HELD_NS = 3600 * _S


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


@dataclass(frozen=True, slots=True)
class ClockMark:
    """Where a service's own time stood when it last found that the wall clock had been set, and where it goes.

    `running_ns` is the machine's uptime at that moment. `offset_ns` was to be added to the uptime for the time of
    then, `target_ns` gives the wall's. Whoever has the mark knows the service's time.
    """

    running_ns: int
    offset_ns: int
    target_ns: int

    def offset_at(self, running_ns: int) -> int:
        """What to add at this uptime: a tenth of what passed is gained or given up until the target is reached.

        A step of more than ADJUSTED_NS is another epoch: after HELD_NS, in which a slip can be taken back, it is
        taken over as it stands.
        """
        missing = self.target_ns - self.offset_ns
        passed = max(running_ns - self.running_ns, 0)
        if abs(missing) > ADJUSTED_NS:
            return self.target_ns if passed >= HELD_NS else self.offset_ns
        room = passed // SLOWNESS
        return self.offset_ns + max(-room, min(room, missing))


class MarkKeeper(Protocol):
    """Where the processes of one machine keep their mark, so that they agree on the time. Neither call may fail."""

    def read(self) -> ClockMark | None:
        """The mark of this boot of this machine, or None."""
        ...

    def write(self, mark: ClockMark) -> None:
        """Replace the mark."""
        ...


_running_ns = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's own clocks.

    `wall_ns`: since 1970-01-01T00:00:00Z; somebody may set it at any time. `running_ns`: since the machine was
    started, sleep included; nobody can set it. `monotonic_s`: for measuring.
    """

    wall_ns: Callable[[], int] = time.time_ns
    running_ns: Callable[[], int] = _running_ns
    monotonic_s: Callable[[], float] = time.monotonic


MACHINE = Machine()


class SystemClock:
    """The time of one process.

    Args:
        keeper: shares the mark with the other processes; without one the process is alone.
        on_step: told by how many seconds the wall clock was set, if this process is the first to find out, on
            whatever thread asked for the time.
        machine: for tests.
    """

    def __init__(
        self,
        keeper: MarkKeeper | None = None,
        on_step: Callable[[float], None] | None = None,
        machine: Machine = MACHINE,
    ) -> None:
        self._keeper = keeper
        self._on_step = on_step
        self._wall_ns = machine.wall_ns
        self._running_ns = machine.running_ns
        # The machine's own function: it is asked several times in every request.
        self.monotonic_s = machine.monotonic_s
        self._mark: ClockMark | None = None
        self._steady_ns: int | None = None

    def now_us(self) -> int:
        return self._now_ns() // 1_000

    def now(self) -> InstantMs:
        return self._now_ns() // 1_000_000

    def _now_ns(self) -> int:
        running_ns, wall_ns, steady_ns = self._running_ns(), self._wall_ns(), self._steady_ns
        if steady_ns is not None and -STEP_NS <= wall_ns - running_ns - steady_ns <= STEP_NS:
            return wall_ns
        mark = self._mark
        if mark is None or abs(wall_ns - running_ns - mark.target_ns) > STEP_NS:
            running_ns, mark = self._look_again()
        offset_ns = mark.offset_at(running_ns)
        is_steady = offset_ns == mark.target_ns
        self._steady_ns = offset_ns if is_steady else None
        return wall_ns if is_steady else running_ns + offset_ns

    def _look_again(self) -> tuple[int, ClockMark]:
        """A step, or only a pause of this thread between its looks at two clocks? Mark it if it is one."""
        running_ns = self._running_ns()
        target_ns = self._wall_ns() - running_ns
        kept = None if self._keeper is None else self._keeper.read()
        marks = [mark for mark in (kept, self._mark) if mark is not None]
        mark = max(marks, key=lambda mark: mark.running_ns, default=ClockMark(running_ns, target_ns, target_ns))
        step_ns = target_ns - mark.target_ns
        if abs(step_ns) > STEP_NS:
            # While a machine starts, its clock is set: nothing is won by keeping a time that was never right.
            offset_ns = target_ns if running_ns < SETTLING_NS else mark.offset_at(running_ns)
            mark = ClockMark(running_ns, offset_ns, target_ns)
            if self._on_step is not None:
                self._on_step(step_ns / _S)
        if self._keeper is not None and mark != kept:
            self._keeper.write(mark)
        self._mark = mark
        return running_ns, mark
