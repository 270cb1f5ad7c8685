"""What the engine needs to be told."""

from collections.abc import Callable
from dataclasses import dataclass

from coatcheck.core.job import InstantMs
from coatcheck.stores.postgres.database_wall import DatabaseWall


def ignore_commit(members: int, seconds: float) -> None:
    """Nobody measures commits."""


@dataclass(frozen=True, slots=True)
class PostgresConfig:
    """Which database it is and how it is used.

    `dsn` goes to the driver as it stands. `listen_dsn` reaches the same server with a session of its own, for hints;
    None: hints stay in this process and the polls find the rest. `connections`: held at most, that one not counted.
    `is_pooled`: a pooler stands between that lends a session for one transaction. `lease_s`: a lease nobody kept
    alive for this many seconds of the database's clock may be rescued. `events`: whether a channel is configured, so
    that each change of status writes an outbox entry. `observe_commit` is told the members and the seconds of each
    commit. `lease_clock` stands in for the database's clock where a test moves time by hand. `wall` is told now and
    then what the database's clock says. `may_migrate`: whether opening brings the schema up to date; where not, a
    database that needs it is refused.
    """

    dsn: str
    app_name: str
    listen_dsn: str | None = None
    connections: int = 4
    is_pooled: bool = False
    lease_s: float = 15.0
    events: bool = False
    observe_commit: Callable[[int, float], None] = ignore_commit
    lease_clock: Callable[[], InstantMs] | None = None
    wall: DatabaseWall | None = None
    may_migrate: bool = True
