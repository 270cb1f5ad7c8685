"""A store as its operator sees it: not served, but looked at and brought up to date."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SchemaState:
    """Whose store it is, the number of its schema, and the newest number this build knows.

    Where there is no store yet, `app` is None and `number` 0.
    """

    app: str | None
    number: int
    newest: int

    @property
    def is_pending(self) -> bool:
        """Whether there are migrations this build would run."""
        return self.number < self.newest

    @property
    def is_newer(self) -> bool:
        """Whether a newer build has been here, so that this one must not start."""
        return self.number > self.newest


class StoreDatabase(Protocol):
    """What holds a store, opened for one thing at a time. Processes may serve from it meanwhile."""

    async def read_schema(self) -> SchemaState:
        """Look at the schema; nothing is written.

        Raises:
            StoreRefused: this is no store, or not in a place for one.
            StoreUnavailable: it cannot be reached.
        """
        ...

    async def examine(self, app_name: str) -> SchemaState:
        """Find out whether an app could start on it; nothing is written to it.

        Raises:
            StoreRefused: it could not; the message says why.
            StoreUnavailable: it cannot be reached.
        """
        ...

    async def upgrade(self, app_name: str) -> Sequence[int]:
        """Run the pending migrations, each in a transaction of its own, while nobody else does; returns their numbers.

        A store that does not exist yet is made, for this app.

        Raises:
            StoreRefused: it belongs to another app or to a newer build.
            StoreUnavailable: it cannot be reached, or a migration had to wait too long; those before it stand.
        """
        ...
