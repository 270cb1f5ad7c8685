"""What the engine needs to be told."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def ignore_commit(members: int, seconds: float) -> None:
    """Nobody measures commits."""


@dataclass(frozen=True, slots=True)
class SqliteConfig:
    """Where the file is and how it is used.

    `lease_s`: a lease whose heartbeat stood still this many seconds may be rescued. `events`: whether a channel is
    configured, so that each change of status writes an outbox entry. `observe_commit` is told the members and the
    seconds of each commit, on the writer's thread. `may_migrate`: whether opening brings the schema up to date;
    where not, a file that needs it is refused.
    """

    path: Path
    app_name: str
    lease_s: float = 15.0
    events: bool = False
    observe_commit: Callable[[int, float], None] = ignore_commit
    may_migrate: bool = True
