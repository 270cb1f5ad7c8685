"""Carrying out what was decided about revoked tenants: in bounded steps, by any process, begun again after a crash.

A step looks at what is there now and notes nothing between: it goes on wherever the last one ended, and finds the jobs
that came in at the very moment of the revocation as it finds all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policies
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import AuditEntry

REASON: Final = "tenant revoked"
"""Why its jobs are cancelled, as their clients read it."""

KNOWN_EVERYWHERE_MS: Final = 5_000
"""How old a revocation has to be before it can be done: until then a process may still accept work."""


class RevocationTerms(Struct, frozen=True):
    """A revocation as it stands: the tenant's policy, and those of single operations in its place."""

    policy: Revocation
    by_operation: Mapping[str, Revocation]
    revoked_at: InstantMs
    done_at: InstantMs | None

    @classmethod
    def from_row(cls, policy: str, by_operation: str, revoked_at: int, done_at: int | None) -> "RevocationTerms":
        """A row of find_revocation."""
        return cls(Revocation(policy), read_policies(by_operation), revoked_at, done_at)

    def of(self, operation: str) -> Revocation:
        """What becomes of the jobs of an operation."""
        return self.by_operation.get(operation, self.policy)

    def among(self, operations: Iterable[str], *policies: Revocation) -> list[str]:
        """Those of the operations for whose jobs one of the policies holds."""
        return [operation for operation in operations if self.of(operation) in policies]

    def may_be_done(self, now: InstantMs) -> bool:
        """Whether every process has known of it for long enough."""
        return now >= self.revoked_at + KNOWN_EVERYWHERE_MS


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


class RevocationsLeft(Struct, frozen=True):
    """What is left to do: tenants whose revocation is under way, and their jobs that have to end or to be erased yet.

    Up to TENANTS_SWEPT_MAX tenants are counted, and so far that TENANT_JOBS_COUNTED_MAX jobs are found.
    """

    tenants: int = 0
    to_end: int = 0
    to_erase: int = 0

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.to_end + self.to_erase

    def and_of_one(self, to_end: int, to_erase: int) -> "RevocationsLeft":
        """The same with one tenant more."""
        return RevocationsLeft(self.tenants + 1, self.to_end + to_end, self.to_erase + to_erase)


def read_policies(text: str) -> Mapping[str, Revocation]:
    """Policies by operation, as a tenant's row holds them."""
    policies: Mapping[str, Revocation] = msgspec.json.decode(text, type=dict[str, Revocation])
    return policies


def done_entry(tenant: str, now: InstantMs) -> AuditEntry:
    """That nothing is left to do, for the audit log."""
    return AuditEntry(now, "coatcheck", "upkeep", "tenant.revocation-done", tenant, tenant)


class RevokingStore(Protocol):
    """For upkeep. Any verb may raise StoreUnavailable."""

    async def list_revoked(self, done_since: InstantMs, after: str, limit: int) -> Sequence[str]:
        """Names of revoked tenants after `after` whose revocation is not done, or was done only since `done_since`."""
        ...

    async def carry_out_revocation(self, tenant: str, policies: Policies, now: InstantMs, limit: int) -> RevocationStep:
        """End, ask to end or erase at most `limit` of each of a revoked tenant's jobs, as its policies say.

        Once nothing is left, and the revocation is old enough for every process to know of it, it is noted as done.
        """
        ...

    async def measure_revocations(self) -> RevocationsLeft:
        """What is left to do now for all revoked tenants."""
        ...
