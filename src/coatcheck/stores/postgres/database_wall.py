"""The database's clock as the wall clock of every process that uses it, so that hosts need not agree on the time."""

from collections.abc import Awaitable, Callable, Sequence

from coatcheck.store.clock import MACHINE, Machine
from coatcheck.stores.postgres.rows import Row

TOLERATED_NS = 50_000_000
LOOK_INTERVAL_S = 5.0
"""How often the database is asked: a host whose clock is set is wrong for so long."""


class DatabaseWall:
    """A wall clock: this machine's, put right by how far the database's was seen to be from it.

    Differences too small to matter, and those that the way there and back may have made, are left alone: time that
    trembles would be worse.
    """

    def __init__(self, machine: Machine = MACHINE) -> None:
        self._machine = machine
        self._skew_ns = 0

    def wall_ns(self) -> int:
        """Since 1970-01-01T00:00:00Z, as the database would say."""
        return self._machine.wall_ns() + self._skew_ns

    async def look(self, ask: Callable[[], Awaitable[Sequence[Row]]]) -> None:
        """Ask the database for its time. `ask`: the rows of read_clock."""
        asked_ns = self._machine.running_ns()
        ((database_us,),) = await ask()
        self.note(asked_ns, database_us)

    def note(self, asked_ns: int, database_us: int) -> None:
        """What the database answered to a question asked when the machine had run for `asked_ns`."""
        taken_ns = self._machine.running_ns() - asked_ns
        skew_ns = database_us * 1_000 + taken_ns // 2 - self._machine.wall_ns()
        if abs(skew_ns - self._skew_ns) > TOLERATED_NS + taken_ns // 2:
            self._skew_ns = skew_ns
