"""The inbox: jobs handed in within a transaction of the caller's own, on a database that the engine shares with it.

An engine offers it or does not; nobody who needs no inbox knows of it. What is in it is a job that every reader finds,
queued, from the moment the caller commits; the engine moves it on into the queue soon after.
"""

from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.terms import Terms
from coatcheck.store.records import Disposition, Submission


class InboxMeasure(Struct, frozen=True):
    """How many jobs wait in the inbox, counted up to INBOX_JOBS_COUNTED_MAX, and when the first was handed in."""

    waiting: int
    oldest_at: InstantMs | None


@runtime_checkable
class InboxStore(Protocol):
    """For acceptance, and for upkeep."""

    async def hand_in(self, connection: Any, submission: Submission) -> Disposition:
        """Write a new job on the caller's connection, to be there if its transaction commits; or find the job its key
        stands for. Nothing is written unless Accepted.

        Raises:
            TypeError: the connection is of no driver that the engine knows.
            ValueError: no transaction is open on it.
        """
        ...

    async def promote_inbox(self, policies: Policies, terms: Terms, now: InstantMs, limit: int) -> int:
        """Move committed jobs into the queue; those whose key is another job's by now, and those for which their
        tenant's queue has no room, end failed. Returns how many.

        Touches at most `limit` rows, does nothing twice, and may run in every process.
        """
        ...

    async def measure_inbox(self) -> InboxMeasure:
        """What is committed and waits in the inbox now."""
        ...
