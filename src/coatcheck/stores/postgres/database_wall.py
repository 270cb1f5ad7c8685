"""The database's clock as the wall clock of every process that uses it, so that hosts need not agree on the time."""

from coatcheck.store.clock import MACHINE, Machine

TOLERATED_NS = 50_000_000


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

    def note(self, asked_ns: int, database_us: int) -> None:
        """What the database answered to a question asked when `running_ns` was `asked_ns`."""
        taken_ns = self._machine.running_ns() - asked_ns
        skew_ns = database_us * 1_000 + taken_ns // 2 - self._machine.wall_ns()
        if abs(skew_ns - self._skew_ns) > TOLERATED_NS + taken_ns // 2:
            self._skew_ns = skew_ns

    def running_ns(self) -> int:
        """By what the way to the database and back is measured."""
        return self._machine.running_ns()
