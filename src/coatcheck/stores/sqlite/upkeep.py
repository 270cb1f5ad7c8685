"""Sweeps: each bounded, each guarded row by row, so that any number of processes may run them."""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core.job import InstantMs
from coatcheck.core.outcome import Lost
from coatcheck.core.policy import Policies
from coatcheck.core.starts import Turn
from coatcheck.core.terms import Terms
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import HeldTurns, Promotion, Prunable
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import next_due_at, promote, take_waiting
from coatcheck.stores.sqlite.retention import bury
from coatcheck.stores.sqlite.rows import EndedLease, Place, fixed_of
from coatcheck.stores.sqlite.settling import Ended, Settling, end_jobs, overdue_ending, settle_leases
from coatcheck.stores.sqlite.transaction import Transaction
from coatcheck.stores.sqlite.turns import review

_JITTER_BITS = 53
_PRUNING = {
    Prunable.RESULTS: "delete_results",
    Prunable.TOMBSTONES: "delete_tombstones",
    Prunable.KEYS: "delete_keys",
    Prunable.SPENDING: "delete_spending",
    Prunable.API_KEYS: "delete_api_keys",
    Prunable.AUDIT: "delete_audit",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A heartbeat as a rescuer first saw it, on its own monotonic clock."""

    beat: int
    since_s: float


class BeatWatch:
    """Tells which leases have stood still for a lease time, by what this process saw itself.

    No wall clock is compared. A watcher that was itself stopped (a paused process) forgets what it saw: its own
    absence must not count as the workers' silence.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[tuple[str, str], Seen] = {}
        self._looked_at_s: float | None = None

    def forget(self) -> None:
        """Count from anew at the next look."""
        self._seen = {}

    def silent(self, leases: Sequence[tuple[str, str, int]], now_s: float) -> list[tuple[str, str, int]]:
        """Of (job id, token, beat), those whose beat has not moved for a lease time."""
        was_away = self._looked_at_s is not None and now_s - self._looked_at_s > self._lease_s / 2
        before = {} if was_away else self._seen
        self._looked_at_s = now_s
        self._seen = {}
        silent = []
        for job_id, token, beat in leases:
            seen = before.get((job_id, token))
            if seen is None or seen.beat != beat:
                seen = Seen(beat, now_s)
            self._seen[job_id, token] = seen
            if now_s - seen.since_s >= self._lease_s:
                silent.append((job_id, token, beat))
        return silent


class Sweeping(Facet):
    """The engine's UpkeepStore."""

    _beats: BeatWatch

    async def promote_due(self, now: InstantMs, limit: int) -> Promotion:
        def act(transaction: Transaction) -> Promotion:
            return Promotion(promote(transaction, now, limit), next_due_at(transaction))

        return await self._writer.run(act)

    async def rescue_leases(self, policies: Policies, now: InstantMs, limit: int) -> int:
        # The look takes the way of the heartbeats: while the store writes for nobody, nobody can have kept a lease.
        leases = await self._writer.run(lambda transaction: transaction.rows("list_leases"))
        silent = self._beats.silent([(row[0], row[1], row[2]) for row in leases], self.clock.monotonic_s())
        if not silent:
            return 0
        self._fault_point("reap-selected")
        try:
            return await self._writer.run(lambda transaction: _rescue(transaction, silent[:limit], policies, now))
        except StoreUnavailable:
            # Heartbeats failed as well: each lease gets its whole time again.
            self._beats.forget()
            raise

    async def expire_overdue(self, policies: Policies, now: InstantMs, limit: int) -> int:
        return await self._writer.run(lambda transaction: _expire(transaction, policies, now, limit))

    async def restore_turns(self, terms: Terms, after: Turn | None, limit: int) -> HeldTurns:
        # Mostly there are none: one read tells.
        if not self._readers.here(lambda snapshot: snapshot.rows("held_turns", operation="", tenant="", limit=1)):
            return HeldTurns(None, 0)
        return await self._writer.run(lambda transaction: review(transaction, terms, after, limit))

    async def prune_expired(self, what: Prunable, now: InstantMs, limit: int) -> int:
        if what is Prunable.JOBS:
            return await self._writer.run(lambda transaction: _prune_jobs(transaction, now, limit))
        statement, before = _PRUNING[what], now - what.kept_ms
        return await self._writer.run(lambda transaction: transaction.run(statement, now=before, limit=limit))


def _rescue(
    transaction: Transaction, silent: Sequence[tuple[str, str, int]], policies: Policies, now: InstantMs
) -> int:
    rescued = 0
    for job_id, token, beat in silent:
        row = transaction.row("rescue_lease", job_id=job_id, token=token, beat=beat)
        if row is None:
            continue
        lease = EndedLease(*row, *transaction.rows("open_job", job_id=job_id)[0])
        jitter = secrets.randbits(_JITTER_BITS) / (1 << _JITTER_BITS)
        lost = Lost(is_blamed=True, is_suspect=False)
        settle_leases(transaction, [Settling(lease, lost, policies.of(lease.operation), jitter, now)])
        transaction.fault_point("reap-updated")
        rescued += 1
    return rescued


def _expire(transaction: Transaction, policies: Policies, now: InstantMs, limit: int) -> int:
    job_ids = [row[0] for row in transaction.rows("overdue_by_deadline", now=now, limit=limit)]
    for (operation,) in transaction.rows("waiting_operations"):
        limit_s = policies.of(operation).queue_limit_s
        if limit_s is not None and len(job_ids) < limit:
            latest = now - math.ceil(limit_s * 1000)
            left = limit - len(job_ids)
            rows = transaction.rows("overdue_by_queue_limit", operation=operation, latest=latest, limit=left)
            job_ids.extend(row[0] for row in rows)
    return sum(_expire_one(transaction, job_id, policies, now) for job_id in dict.fromkeys(job_ids))


def _expire_one(transaction: Transaction, job_id: str, policies: Policies, now: InstantMs) -> int:
    job = transaction.job(job_id, now)
    if job is None:
        return 0
    place = Place(job.operation, job.tenant, job.priority, job.id)
    moving = take_waiting(transaction, place)
    if moving is None:
        return 0
    ending = overdue_ending(job.deadline_at, moving, policies.of(job.operation), now)
    assert ending is not None, "only overdue jobs were selected"
    end_jobs(transaction, [Ended(place, fixed_of(job), ending, now)])
    return 1


def _prune_jobs(transaction: Transaction, now: InstantMs, limit: int) -> int:
    job_ids = [row[0] for row in transaction.rows("expired_jobs", now=now, limit=limit)]
    return sum(bury(transaction, job_id, now) for job_id in job_ids)
