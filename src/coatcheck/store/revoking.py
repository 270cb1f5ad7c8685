"""Carrying out what was decided about revoked tenants: in bounded steps, by any process, begun again after a crash.

A step looks at what is there now and notes nothing between: it goes on wherever the last one ended, and finds the jobs
that came in at the very moment of the revocation as it finds all others.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies


class RevocationStep(Struct, frozen=True):
    """What one step did. `is_done`: nothing was left to do."""

    cancelled: int = 0
    asked: int = 0
    erased: int = 0
    is_done: bool = False

    @property
    def touched(self) -> int:
        """How many jobs it changed."""
        return self.cancelled + self.asked + self.erased


class RevokingStore(Protocol):
    """For upkeep. Any verb may raise StoreUnavailable."""

    async def list_revoked(self, done_since: InstantMs, after: str, limit: int) -> Sequence[str]:
        """Names of revoked tenants, those after `after`, whose revocation is not done or was done only then or later."""
        ...

    async def carry_out_revocation(
        self, tenant: str, policies: Policies, now: InstantMs, limit: int
    ) -> RevocationStep:
        """End, ask to end or erase at most `limit` of each of a revoked tenant's jobs, as its policies say.

        Once nothing is left, and the revocation is old enough for every process to know of it, it is noted as done.
        """
        ...
