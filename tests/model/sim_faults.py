"""What can be wrong with one simulated process, switched on and off by the chaos of a story."""

from collections import Counter
from collections.abc import Callable

import apsw

from coatcheck.testing.simulation_loop import ProcessKilled

COMMITTED = "committed"
"""A point of the simulation's own: the commit is done, and nobody has been told yet."""

POINTS = (
    COMMITTED,
    COMMITTED,
    COMMITTED,
    COMMITTED,
    "after-commit-before-response",
    "before-commit",
    "cancel-stored",
    "claim-before-commit",
    "claimed-before-start",
    "complete-after-commit",
    "dead-lettered",
    "key-reserved",
    "mid-handler",
    "outbox-sent-before-mark",
    "outbox-written",
    "purge-half",
    "reap-selected",
    "reap-updated",
    "redrive-half",
    "request-read",
    "response-half-sent",
    "result-stored-before-commit",
    "retry-scheduled",
    "tombstone-written",
)


class NodeFaults:
    """The faults of one process. `kill` ends it; `lost_share` of its wake-ups never arrive."""

    def __init__(self, kill: Callable[[], None], lost_share: float, passed: Counter[str]) -> None:
        self.lost_share = lost_share
        self.is_disk_full = False
        self.is_file_gone = False
        self._kill = kill
        self._passed = passed
        self._armed: dict[str, int] = {}

    def arm(self, name: str, passes: int) -> None:
        """Let the process die when it passes this point so many times more."""
        self._armed[name] = passes

    def heal(self) -> None:
        """Everything works again. Wake-ups go on being lost: behind each stands a poll."""
        self.is_disk_full = self.is_file_gone = False
        self._armed.clear()

    def pass_point(self, name: str) -> None:
        """A fault point of the product."""
        self._passed[name] += 1
        if name in self._armed:
            self._armed[name] -= 1
            if self._armed[name] <= 0:
                self._armed.clear()
                self._kill()
                raise ProcessKilled(name)
        if name == "before-commit" and self.is_disk_full:
            raise apsw.FullError("database or disk is full (simulated)")
