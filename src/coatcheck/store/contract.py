"""The store, split by reader. An engine implements all of it; a caller asks only for the part it needs.

Every verb is one guarded statement or one transaction, durable when it returns. Callers give the time (`now`, the
engine's own clock read once for each decision), so that a verb can be run again with the same effect. Lease time
alone is the engine's business. `tenant` is part of every read a client can cause: another tenant's job is not
found. Any verb may raise StoreUnavailable: then nothing was written, unless the store was lost in the very moment of
the commit, of which only a repeat can tell.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from coatcheck.core.costs import SpendTotals
from coatcheck.core.events import OutboxEntry
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord
from coatcheck.core.policy import Policies
from coatcheck.store.clock import Clock
from coatcheck.store.controls import AuditEntry, ControlStore
from coatcheck.store.costs import CostStore
from coatcheck.store.operating import OperatingStore
from coatcheck.store.queues import QueueStore
from coatcheck.store.records import (
    Beat,
    BeatAnswer,
    CancelAnswer,
    ClaimRequest,
    Claims,
    Disposition,
    EraseDisposition,
    Finished,
    Finishing,
    JobPage,
    JobQuery,
    Lease,
    Promotion,
    Prunable,
    RedriveRefusal,
    Redriving,
    Spending,
    StoredResult,
    Submission,
    Tombstone,
    WakeUp,
)
from coatcheck.store.revoking import RevokingStore
from coatcheck.store.turns import TurnStore


class AcceptanceStore(Protocol):
    """For acceptance: the one commit before a 202."""

    async def accept_job(self, submission: Submission) -> Disposition:
        """Store a new job with its key, or find the job its key stands for. Nothing is written unless Accepted.

        Queued jobs are counted in the same commit, where the submission has limits: never more are accepted.
        Its charges are made in the same commit: what is charged never exceeds a budget.
        """
        ...

    async def find_earlier(self, submission: Submission) -> Disposition | None:
        """What the submission's key stands for, where that is known already. Nothing is written."""
        ...


class ClaimStore(Protocol):
    """For execution: taking jobs, keeping them, ending their attempts."""

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        """Lease the next jobs in fair order, making due ones ready first. Overdue jobs end failed and never start.

        Running jobs are counted in the same commit, where a tenant has a limit: never more start. A turn in which no
        job may start is held: it leaves the order until a job of its tenant ends, or `restore_turns` looks at it.
        """
        ...

    async def extend_leases(self, beats: Sequence[Beat], now: InstantMs) -> Sequence[BeatAnswer]:
        """Keep leases alive and store progress; one answer for each beat, in order."""
        ...

    async def finish_attempt(self, finishing: Finishing, now: InstantMs) -> Finished:
        """Settle an attempt's outcome and store what follows from it.

        Raises:
            LeaseLost: the lease is no longer this worker's; nothing was written.
        """
        ...

    async def record_effect(self, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes:
        """Record an effect of the job's chain once; returns the value that stands, the first one recorded.

        Raises:
            LeaseLost: the lease is no longer this worker's; nothing was written.
        """
        ...

    async def find_effect(self, lease: Lease, name: str) -> bytes | None:
        """The recorded value of an effect of the job's chain, or None.

        Raises:
            LeaseLost: the lease is no longer this worker's.
        """
        ...

    async def spend(self, spending: Spending) -> SpendTotals:
        """Count what an attempt spends, once for each number; what stands then is for the caller to judge.

        Raises:
            LeaseLost: the lease is no longer this worker's; nothing was written.
        """
        ...


class ReadingStore(Protocol):
    """For status reads, lists and the console. Expiry is computed here, at the read."""

    async def find_job(self, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        """The tenant's job, its tombstone once it expired, or None."""
        ...

    async def read_result(self, tenant: str, job_id: str, now: InstantMs) -> StoredResult | None:
        """The result's bytes; None when there is none, or no longer."""
        ...

    async def list_jobs(self, query: JobQuery, now: InstantMs) -> JobPage:
        """One page of the tenant's jobs, newest first."""
        ...

    async def list_attempts(self, tenant: str, job_id: str) -> Sequence[AttemptRecord]:
        """The starts of the tenant's job, oldest first, the running one included."""
        ...

    async def check_health(self) -> None:
        """Return if the store answers; raises StoreUnavailable otherwise."""
        ...


class CommandStore(Protocol):
    """For what a client or an operator may do to a job that exists.

    With an operator's wish comes an audit entry, which is written in the same commit if the wish changes anything.
    """

    async def cancel_job(
        self,
        tenant: str,
        job_id: str,
        reason: str | None,
        policies: Policies,
        now: InstantMs,
        entry: AuditEntry | None = None,
    ) -> CancelAnswer | Tombstone | None:
        """End a queued job at once, ask a running one to stop. None: not this tenant's job."""
        ...

    async def erase_job(self, tenant: str, job_id: str, now: InstantMs) -> EraseDisposition | None:
        """Replace a finished job by its tombstone. None: not this tenant's job."""
        ...

    async def redrive_job(self, redriving: Redriving, entry: AuditEntry | None = None) -> JobRecord | RedriveRefusal:
        """Run a failed job again as a new job of its chain; a second call answers with the same new job."""
        ...


class OutboxStore(Protocol):
    """For the relay."""

    async def read_outbox(self, limit: int) -> Sequence[OutboxEntry]:
        """The oldest entries. Empty while another process holds the relay's turn."""
        ...

    async def remove_relayed(self, seqs: Sequence[int]) -> None:
        """Forget entries that were told."""
        ...


class UpkeepStore(Protocol):
    """For the sweeps. Each touches at most `limit` rows, does nothing twice, and may run in every process."""

    async def promote_due(self, now: InstantMs, limit: int) -> Promotion:
        """Make jobs ready whose time has come."""
        ...

    async def rescue_leases(self, policies: Policies, now: InstantMs, limit: int) -> int:
        """Settle as lost the attempts whose lease ran out. Returns how many."""
        ...

    async def expire_overdue(self, policies: Policies, now: InstantMs, limit: int) -> int:
        """End waiting jobs whose deadline or queue limit passed. Returns how many."""
        ...

    async def prune_expired(self, what: Prunable, now: InstantMs, limit: int) -> int:
        """Remove what retention no longer keeps; jobs leave a tombstone. Returns how many."""
        ...


class WakeUpSource(Protocol):
    """For everyone who waits. Hints only: each has a poll behind it."""

    def listen(self, callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        """Call `callback` on the event loop for each hint of this or another process; returns the way to stop."""
        ...


class Store(
    AcceptanceStore,
    ClaimStore,
    ReadingStore,
    QueueStore,
    CommandStore,
    OutboxStore,
    UpkeepStore,
    TurnStore,
    OperatingStore,
    RevokingStore,
    ControlStore,
    CostStore,
    WakeUpSource,
    Protocol,
):
    """All of it, with its clock and its life."""

    clock: Clock

    async def open(self) -> None:
        """Open, check and migrate the store.

        Raises:
            StoreRefused: this store must not be used; the message says why.
            StoreUnavailable: it cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Finish what was begun and let go."""
        ...
