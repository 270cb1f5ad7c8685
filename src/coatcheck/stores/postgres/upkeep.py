"""Sweeps: each bounded, each guarded row by row, so that any number of processes may run them."""

import math
import secrets
from collections.abc import Sequence

from coatcheck.core.job import InstantMs
from coatcheck.core.outcome import Lost
from coatcheck.core.policy import Policies
from coatcheck.core.starts import Turn
from coatcheck.core.terms import Terms
from coatcheck.store.records import HeldTurns, Promotion, Prunable
from coatcheck.stores.postgres.claims import lease_and_job
from coatcheck.stores.postgres.costs import ran_before_ms
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.lease_watch import LeaseWatch
from coatcheck.stores.postgres.queue import leave_turns, next_due_at, promote, take_waiting
from coatcheck.stores.postgres.retention import bury
from coatcheck.stores.postgres.rows import Fixed, Place
from coatcheck.stores.postgres.settling import Endings, Settling, overdue_ending
from coatcheck.stores.postgres.transaction import Transaction
from coatcheck.stores.postgres.turns import review_turns

_JITTER_BITS = 53
_PRUNING = {
    Prunable.RESULTS: "delete_results",
    Prunable.TOMBSTONES: "delete_tombstones",
    Prunable.KEYS: "delete_keys",
    Prunable.SPENDING: "delete_spending",
    Prunable.API_KEYS: "delete_api_keys",
    Prunable.AUDIT: "delete_audit",
}


class Sweeping(Facet):
    """The engine's UpkeepStore."""

    _watch: LeaseWatch

    async def promote_due(self, now: InstantMs, limit: int) -> Promotion:
        async def act(transaction: Transaction) -> Promotion:
            return Promotion(await promote(transaction, now, limit), await next_due_at(transaction))

        return await self._transactions.run(act)

    async def rescue_leases(self, policies: Policies, now: InstantMs, limit: int) -> int:
        lease_clock = self._config.lease_clock
        lease_now = None if lease_clock is None else lease_clock()
        ((database_ms, started_ms, has_silent),) = await self._transactions.read("look_at_leases", lease_now)
        if lease_clock is None:
            self._watch.note(database_ms, started_ms, self._connections.failed_at_s)
            if self._watch.was_set_back:
                length = self._watch.lease_ms
                await self._transactions.run(lambda transaction: transaction.run("shorten_leases", length))
            if not self._watch.may_rescue:
                return 0
        if not has_silent:
            return 0
        self._fault_point("reap-selected")
        return await self._transactions.run(lambda transaction: _rescue(transaction, lease_now, policies, now, limit))

    async def expire_overdue(self, policies: Policies, now: InstantMs, limit: int) -> int:
        turns: set[Turn] = set()

        async def act(transaction: Transaction) -> int:
            turns.clear()
            job_ids = await _overdue(transaction, policies, now, limit)
            return await _expire(transaction, job_ids, policies, now, turns)

        count = await self._transactions.run(act)
        await leave_turns(self._transactions, turns)
        return count

    async def restore_turns(self, terms: Terms, after: Turn | None, limit: int) -> HeldTurns:
        return await review_turns(self._transactions, terms, after, limit)

    async def prune_expired(self, what: Prunable, now: InstantMs, limit: int) -> int:
        if what is Prunable.JOBS:
            return await self._transactions.run(lambda transaction: _prune_jobs(transaction, now, limit))
        statement, before = _PRUNING[what], now - what.kept_ms
        return await self._transactions.run(lambda transaction: transaction.run(statement, before, limit))


async def _rescue(
    transaction: Transaction, lease_now: InstantMs | None, policies: Policies, now: InstantMs, limit: int
) -> int:
    endings = Endings(transaction)
    rows = await transaction.rows("rescue_leases", lease_now, limit)
    leases = [lease_and_job(row) for row in rows]
    timed = [lease.job_id for lease, _ in leases if policies.of(lease.operation).processing_max_s is not None]
    earlier_ms = await ran_before_ms(transaction, timed)
    for lease, fixed in leases:
        jitter = secrets.randbits(_JITTER_BITS) / (1 << _JITTER_BITS)
        lost, policy = Lost(is_blamed=True, is_suspect=False), policies.of(lease.operation)
        settling = Settling(lost, policy, jitter, earlier_ms.get(lease.job_id, 0))
        endings.settle_lease(lease, fixed, settling, now)
        transaction.fault_point("reap-updated")
    await endings.write()
    return len(rows)


async def _overdue(transaction: Transaction, policies: Policies, now: InstantMs, limit: int) -> list[str]:
    job_ids = [row[0] for row in await transaction.rows("overdue_by_deadline", now, limit)]
    for (operation,) in await transaction.rows("waiting_operations"):
        limit_s = policies.of(operation).queue_limit_s
        if limit_s is not None and len(job_ids) < limit:
            latest = now - math.ceil(limit_s * 1000)
            rows = await transaction.rows("overdue_by_queue_limit", operation, latest, limit - len(job_ids))
            job_ids.extend(row[0] for row in rows)
    return list(dict.fromkeys(job_ids))


async def _expire(
    transaction: Transaction, job_ids: Sequence[str], policies: Policies, now: InstantMs, turns: set[Turn]
) -> int:
    """End jobs that still wait; adds to `turns` whose turns lost a job."""
    if not job_ids:
        return 0
    jobs = {}
    for job_id, operation, tenant, priority, *fixed in await transaction.rows("waiting_jobs", job_ids):
        jobs[job_id] = (Place(operation, tenant, priority, job_id), Fixed._make(fixed))
    taken, left = await take_waiting(transaction, [place for place, _ in jobs.values()])
    turns |= left
    endings = Endings(transaction)
    for job_id in [job_id for job_id in job_ids if job_id in taken]:
        place, fixed_parts = jobs[job_id]
        ending = overdue_ending(fixed_parts.deadline_at, taken[job_id], policies.of(place.operation), now)
        assert ending is not None, "only overdue jobs were selected"
        endings.end_job(place, fixed_parts, ending, now)
    await endings.write()
    return len(taken)


async def _prune_jobs(transaction: Transaction, now: InstantMs, limit: int) -> int:
    rows = await transaction.rows("expired_jobs", now, limit)
    return await bury(transaction, [row[0] for row in rows], now)
