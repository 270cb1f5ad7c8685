"""A store as its operator sees it: not served, but looked at, brought up to date and copied."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from coatcheck.store.dump import Dump, Load


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

    def open_dump(self) -> AbstractAsyncContextManager[Dump]:
        """Read everything out, while nobody else can write. The store's schema must be this build's.

        Raises:
            StoreRefused: somebody uses the store, or it holds what cannot be read out.
            StoreUnavailable: it cannot be reached.
        """
        ...

    def open_load(self, app_name: str) -> AbstractAsyncContextManager[Load]:
        """Take everything in, with one commit at the end of the block. A store that does not exist yet is made.

        Raises:
            StoreRefused: somebody uses the store, it is not empty, or not this app's or this build's.
            StoreUnavailable: it cannot be reached; nothing was taken in.
        """
        ...
