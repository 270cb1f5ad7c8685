"""Taking jobs in fair order: whose turn it is is worked out first, then each tenant's jobs are taken together.

Several claimers may see the same turns. None waits for another: each takes jobs that no other is taking.
"""

import heapq
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coatcheck.core import limits
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.core.states import Status
from coatcheck.store.records import Claim, ClaimRequest, Claims, Lease, WakeUpKind
from coatcheck.stores.postgres.costs import ran_before_ms
from coatcheck.stores.postgres.queue import Turn, next_due_at, promote
from coatcheck.stores.postgres.rows import (
    FIXED_COLUMNS,
    MOVING_COLUMNS,
    Fixed,
    Moving,
    Place,
    Row,
    columns,
    job_from_parts,
)
from coatcheck.stores.postgres.settling import Endings, is_excused, overdue_ending
from coatcheck.stores.postgres.transaction import Transaction

_LOOKED_AT_MAX = 2 * limits.CLAIM_BATCH_MAX
_TOKEN_BYTES = 12
_LEASE_COLUMNS = 15
_CLAIM_LOCK = 0x636C61


@dataclass(frozen=True, slots=True)
class LeaseTime:
    """How long a lease lasts, and from when where a test moves time by hand: both in ms."""

    length: int
    now: InstantMs | None


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim: `operations` is the order in which it goes round them."""

    request: ClaimRequest
    operations: Sequence[str]
    now: InstantMs
    lease_time: LeaseTime


@dataclass(slots=True)
class Taking:
    """What a claim did: for whom turns advance, who may be left without work by it, and who was before."""

    claims: Claims = field(default_factory=lambda: Claims((), None))
    served: list[Turn] = field(default_factory=list)
    drained: list[Turn] = field(default_factory=list)
    idle: list[Turn] = field(default_factory=list)

    @property
    def been_to(self) -> set[Turn]:
        return {*self.served, *self.drained, *self.idle}


@dataclass(frozen=True, slots=True)
class _Taken:
    """A job that left the ready ones and is not leased yet."""

    place: Place
    waited: Moving
    fixed: Fixed
    payload: bytes


@dataclass(frozen=True, slots=True)
class _Turns:
    """Rows of next_turns that name a tenant, and when the next job that waits for its time is due."""

    rows: Sequence[Row]
    next_due_at: InstantMs | None


async def claim(transaction: Transaction, asked: Asked) -> Taking:
    """Lease the next jobs, going round the operations, until the slots are full or nothing is ready."""
    slots = await _slots(transaction, asked)
    wanted = min(asked.request.slots, limits.CLAIM_BATCH_MAX)
    taking = Taking()
    started: list[_Taken] = []
    turns = await _next_turns(transaction, slots, wanted, taking)
    if turns.next_due_at is not None and turns.next_due_at <= asked.now:
        await promote(transaction, asked.now, limits.SWEEP_BATCH_MAX)
        turns = await _next_turns(transaction, slots, wanted, taking)
    while True:
        idle_before = len(taking.idle)
        picked = _pick(turns.rows, slots, wanted - len(started), taking)
        has_idle = len(taking.idle) > idle_before
        taken = await _take(transaction, picked, taking)
        in_time = await _end_overdue(transaction, asked, taken)
        started += in_time
        for job in in_time:
            slots[job.place.operation] -= 1
        # Late jobs, and turns that wait for nothing, stand before others who are not to wait for the next claim. What
        # another claimer is just taking is left to it.
        is_short = len(started) < wanted and (len(in_time) < len(picked) or has_idle)
        has_moved = has_idle or bool(taken)
        if not is_short or not has_moved or len(taking.served) + len(taking.idle) >= _LOOKED_AT_MAX:
            break
        turns = await _next_turns(transaction, slots, wanted - len(started), taking)
    taking.claims = Claims(await _lease(transaction, asked, started), turns.next_due_at)
    return taking


async def _slots(transaction: Transaction, asked: Asked) -> dict[str, int]:
    """How many attempts of each operation may start, in the order in which the claim goes round."""
    request = asked.request
    slots = {name: request.slots_by_operation[name] for name in asked.operations}
    bounds = {name: request.policies.get(name, DEFAULT_POLICY).concurrency_max for name in slots}
    bounded = sorted(name for name, largest in bounds.items() if largest is not None and slots[name] > 0)
    if not bounded:
        return slots
    await transaction.rows("hold_operations", _CLAIM_LOCK, bounded)
    for name, running in await transaction.rows("count_running", bounded):
        slots[name] = max(0, min(slots[name], (bounds[name] or 0) - running))
    return slots


async def _next_turns(transaction: Transaction, slots: Mapping[str, int], wanted: int, taking: Taking) -> _Turns:
    """As many turns as starts are wanted are enough to know: each start goes to the lowest, which then rises by one.

    Those that this claim has been to come on top: their rows do not show yet that they rose, or have nothing left.
    """
    been_to = Counter(operation for operation, _ in taking.been_to)
    asked = []
    for name, free in slots.items():
        if free > 0 and wanted > 0:
            # One job more than is free tells a tenant that is served to the last from one that has more.
            asked.append((name, min(free, wanted) + been_to[name], min(free, wanted) + 1))
    if not asked:
        return _Turns((), await next_due_at(transaction))
    rows = await transaction.rows("next_turns", *columns(asked, 3))
    return _Turns([row for row in rows if row[1] is not None], rows[0][-1])


def _pick(rows: Sequence[Row], slots: Mapping[str, int], wanted: int, taking: Taking) -> list[Turn]:
    """The operations and tenants of the next `wanted` starts, in order. Nothing is taken yet."""
    turns: dict[str, list[tuple[float, str, int]]] = {name: [] for name in slots}
    served, been_to = Counter(taking.served), taking.been_to
    for operation, tenant, vstart, waiting, _ in rows:
        if waiting:
            heapq.heappush(turns[operation], (vstart + served[operation, tenant], tenant, waiting))
        elif (operation, tenant) not in been_to:
            taking.idle.append((operation, tenant))
    left = dict(slots)
    picked: list[Turn] = []
    while len(picked) < wanted and any(turns.values()):
        for name in [name for name, heap in turns.items() if heap][: wanted - len(picked)]:
            heap = turns[name]
            level, tenant, waiting = heap[0]
            picked.append((name, tenant))
            left[name] -= 1
            if waiting == 1:
                taking.drained.append((name, tenant))
            if left[name] == 0:
                heap.clear()
            elif waiting > 1:
                heapq.heapreplace(heap, (level + 1.0, tenant, waiting - 1))
            else:
                heapq.heappop(heap)
    return picked


async def _take(transaction: Transaction, picked: Sequence[Turn], taking: Taking) -> list[_Taken]:
    """Take the jobs out of the ready ones, in the order picked."""
    if not picked:
        return []
    wishes = [(*turn, count) for turn, count in sorted(Counter(picked).items())]
    by_turn: dict[Turn, list[_Taken]] = {turn: [] for turn in picked}
    for row in await transaction.rows("take_ready", *columns(wishes, 3)):
        by_turn[row[0], row[1]].append(_taken(row))
    turns = {turn: iter(jobs) for turn, jobs in by_turn.items()}
    taken = [job for turn in picked if (job := next(turns[turn], None)) is not None]
    taking.served += [(job.place.operation, job.place.tenant) for job in taken]
    return taken


def _taken(row: Row) -> _Taken:
    operation, tenant, priority, job_id = row[:4]
    waited = Moving.from_row(row[4 : 4 + MOVING_COLUMNS])
    fixed = Fixed._make(row[4 + MOVING_COLUMNS : 4 + MOVING_COLUMNS + FIXED_COLUMNS])
    return _Taken(Place(operation, tenant, priority, job_id), waited, fixed, payload=row[-1])


async def _end_overdue(transaction: Transaction, asked: Asked, taken: Sequence[_Taken]) -> list[_Taken]:
    """End the jobs that came too late to start; returns the others."""
    endings = Endings(transaction)
    in_time = []
    for job in taken:
        policy = asked.request.policies.get(job.place.operation, DEFAULT_POLICY)
        ending = overdue_ending(job.fixed.deadline_at, job.waited, policy, asked.now)
        if ending is None or await is_excused(transaction, job.place.tenant, ending, asked.now):
            in_time.append(job)
        else:
            endings.end_job(job.place, job.fixed, ending, asked.now)
    await endings.write()
    return in_time


async def _lease(transaction: Transaction, asked: Asked, started: Sequence[_Taken]) -> list[Claim]:
    if not started:
        return []
    tokens = os.urandom(_TOKEN_BYTES * len(started)).hex()
    size = 2 * _TOKEN_BYTES
    timed = [job.place.job_id for job in started if _has_time_to_count(asked.request, job)]
    ran_ms = await ran_before_ms(transaction, timed)
    claims = [
        _claim(job, tokens[size * n : size * (n + 1)], ran_ms.get(job.place.job_id, 0), asked.now)
        for n, job in enumerate(started)
    ]
    worker_id = asked.request.worker_id
    rows = [_lease_row(worker_id, job, claim) for job, claim in zip(started, claims, strict=True)]
    time = asked.lease_time
    await transaction.run("insert_leases", *columns(rows, _LEASE_COLUMNS), time.now, time.length)
    await transaction.tell([(EventType.STARTED, claim.job) for claim in claims])
    for claim in claims:
        transaction.hint(WakeUpKind.CHANGED, claim.job.id)
    transaction.fault_point("claim-before-commit")
    return claims


def _has_time_to_count(request: ClaimRequest, job: _Taken) -> bool:
    policy = request.policies.get(job.place.operation, DEFAULT_POLICY)
    return policy.processing_max_s is not None and job.waited.attempt > 0


def _claim(job: _Taken, token: str, ran_ms: int, now: InstantMs) -> Claim:
    waited = job.waited
    # The caller read its clock before its turn came: another process may have made the job, or found it due, since.
    now = max(now, waited.available_at)
    running = Moving(
        available_at=waited.available_at,
        version=waited.version + 1,
        attempt=waited.attempt + 1,
        counted_attempts=waited.counted_attempts + 1,
        crashes=waited.crashes,
        is_alone=waited.is_alone,
        started_at=now if waited.started_at is None else waited.started_at,
        updated_at=now,
    )
    record = job_from_parts(job.place, job.fixed, running, Status.RUNNING)
    return Claim(Lease(record.id, record.attempt, token), record, job.payload, waited.is_alone, ran_ms)


def _lease_row(worker_id: str, job: _Taken, claim: Claim) -> Row:
    record = claim.job
    return (
        record.id,
        record.operation,
        record.tenant,
        record.priority,
        claim.lease.token,
        worker_id,
        record.available_at,
        record.version,
        record.attempt,
        record.counted_attempts,
        job.waited.crashes,
        claim.is_alone,
        record.started_at,
        record.updated_at,
        record.updated_at,
    )
