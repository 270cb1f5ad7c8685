"""Taking jobs in fair order: whose turn it is is worked out first, then each tenant's jobs are taken together.

Several claimers may see the same turns. None waits for another: each takes jobs that no other is taking.
"""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.core.starts import Starts, Turn
from coatcheck.core.states import Status
from coatcheck.store.records import Claim, ClaimRequest, Claims, Lease, WakeUpKind
from coatcheck.stores.postgres.costs import ran_before_ms
from coatcheck.stores.postgres.queue import next_due_at, promote
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
from coatcheck.stores.postgres.settling import Endings, overdue_ending
from coatcheck.stores.postgres.transaction import Transaction

_LOOKED_AT_MAX = 2 * limits.CLAIM_BATCH_MAX
_CLAIM_LOCK = 0x636C61
_TENANT_LOCK = 0x74656E


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
    """What a claim did: for whom turns advance, who may be left without work by it, and who was before.

    held: turns in which no job may start. crowded: those whose tenant another claimer was just counting.
    """

    starts: Starts
    claims: Claims = field(default_factory=lambda: Claims((), None))
    served: list[Turn] = field(default_factory=list)
    drained: list[Turn] = field(default_factory=list)
    idle: list[Turn] = field(default_factory=list)
    held: list[Turn] = field(default_factory=list)
    crowded: set[Turn] = field(default_factory=set)

    @property
    def been_to(self) -> set[Turn]:
        return {*self.served, *self.drained, *self.idle, *self.held, *self.crowded}

    @property
    def fruitless(self) -> int:
        """How many turns it has been to in vain, and need not be shown again."""
        return len(self.idle) + len(self.held) + len(self.crowded)

    @property
    def costs(self) -> dict[Turn, float]:
        """How far turns move back."""
        return {turn: count * self.starts.cost(turn[1]) for turn, count in Counter(self.served).items()}


class _Taken(NamedTuple):
    """A job that left the ready ones. It is leased under `token`, unless it came too late to start."""

    place: Place
    waited: Moving
    fixed: Fixed
    payload: bytes
    token: str
    begins_at: InstantMs
    is_late: bool


@dataclass(frozen=True, slots=True)
class _Turns:
    """Rows of next_turns that name a tenant, and when the next job that waits for its time is due."""

    rows: Sequence[Row]
    next_due_at: InstantMs | None


async def claim(transaction: Transaction, asked: Asked) -> Taking:
    """Lease the next jobs, going round the operations, until the slots are full or nothing is ready."""
    slots = await _slots(transaction, asked)
    wanted = min(asked.request.slots, limits.CLAIM_BATCH_MAX)
    taking = Taking(asked.request.starts())
    started: list[_Taken] = []
    turns = await _next_turns(transaction, slots, wanted, taking)
    if turns.next_due_at is not None and turns.next_due_at <= asked.now:
        await promote(transaction, asked.now, limits.SWEEP_BATCH_MAX)
        turns = await _next_turns(transaction, slots, wanted, taking)
    while True:
        fruitless_before = taking.fruitless
        await _judge(transaction, turns.rows, taking)
        picked, has_passed_over = _pick(turns.rows, slots, wanted - len(started), taking)
        is_fruitless = taking.fruitless > fruitless_before
        taken = await _take(transaction, asked, picked, taking)
        in_time = await _end_overdue(transaction, asked, taken)
        taking.starts.settle(picked, (job.place.turn for job in in_time))
        started += in_time
        for job in in_time:
            slots[job.place.operation] -= 1
        # Late jobs, and turns that wait for nothing or in vain, stand before others who are not to wait for the next
        # claim. What another claimer is just taking is left to it.
        is_short = len(started) < wanted and (len(in_time) < len(picked) or is_fruitless or has_passed_over)
        has_moved = is_fruitless or bool(taken)
        is_long = len(taking.served) + taking.fruitless >= _LOOKED_AT_MAX
        if not is_short or not has_moved or is_long:
            break
        turns = await _next_turns(transaction, slots, wanted - len(started), taking)
    is_crowded = len(started) < wanted and (bool(taking.crowded) or (bool(taking.held) and is_long))
    taking.claims = Claims(await _begin(transaction, asked, started), turns.next_due_at, is_crowded)
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

    Those that this claim has been to come on top: their rows do not show yet that they rose, or have nothing left. So
    do those of tenants with their whole part of this worker. Where many stand in vain, each look shows twice as many.
    """
    been_to = Counter(operation for operation, _ in (*taking.been_to, *taking.held))
    asked = []
    for name, free in slots.items():
        if free > 0 and wanted > 0:
            # One job more than is free tells a tenant that is served to the last from one that has more.
            turns = min(free, wanted) + been_to[name] + taking.starts.full_here(name)
            asked.append((name, turns, min(free, wanted) + 1))
    if not asked:
        return _Turns((), await next_due_at(transaction))
    rows = await transaction.rows("next_turns", *columns(asked, 3))
    return _Turns([row for row in rows if row[1] is not None], rows[0][-1])


async def _judge(transaction: Transaction, rows: Sequence[Row], taking: Taking) -> None:
    """Find the turns in which no job may start. Where that has to be counted, nobody else may be counting."""
    starts, judged = taking.starts, {*taking.served, *taking.held, *taking.crowded}
    # A turn that waited for nothing when it was last seen was not judged then: it may have work by now.
    turns = [] if starts.is_free else [(row[0], row[1]) for row in rows if row[3] and (row[0], row[1]) not in judged]
    scopes = starts.uncounted(turns)
    if scopes:
        tenants = sorted({tenant for tenant, _ in scopes})
        ours = {row[0] for row in await transaction.rows("try_tenants", _TENANT_LOCK, tenants) if row[1]}
        taking.crowded |= {turn for turn in turns if turn[1] in tenants and turn[1] not in ours}
        # Counted after the lock: whoever had it before has committed what it started.
        counts = await transaction.rows("count_running_in", *columns([s for s in scopes if s[0] in ours], 2))
        starts.learn((tenant, operation, count) for tenant, operation, count in counts)
    taking.held += [turn for turn in turns if turn not in taking.crowded and starts.is_held(turn)]


def _pick(rows: Sequence[Row], slots: Mapping[str, int], wanted: int, taking: Taking) -> tuple[list[Turn], bool]:
    """The operations and tenants of the next `wanted` starts, in order, and whether a tenant that may have no more of
    them was passed over. Nothing is taken yet."""
    starts, turns = taking.starts, _heaps(rows, slots, taking)
    left = dict(slots)
    picked: list[Turn] = []
    has_passed_over = False
    while len(picked) < wanted and any(turns.values()):
        for name in [name for name, heap in turns.items() if heap][: wanted - len(picked)]:
            heap = turns[name]
            level, tenant, waiting = heap[0]
            if not starts.is_free and not starts.may_start((name, tenant)):
                has_passed_over = True
                heapq.heappop(heap)
                continue
            starts.start((name, tenant))
            picked.append((name, tenant))
            left[name] -= 1
            if waiting == 1:
                taking.drained.append((name, tenant))
            if left[name] == 0:
                heap.clear()
            elif waiting > 1:
                heapq.heapreplace(heap, (level + starts.cost(tenant), tenant, waiting - 1))
            else:
                heapq.heappop(heap)
    return picked, has_passed_over


def _heaps(rows: Sequence[Row], slots: Mapping[str, int], taking: Taking) -> dict[str, list[tuple[float, str, int]]]:
    """By operation the tenants in their order, each at its level and with the number of its jobs."""
    heaps: dict[str, list[tuple[float, str, int]]] = {name: [] for name in slots}
    costs, been_to, set_aside = taking.costs, taking.been_to, {*taking.held, *taking.crowded}
    for operation, tenant, vstart, waiting, _ in rows:
        turn = (operation, tenant)
        if turn in set_aside:
            continue
        if waiting:
            heapq.heappush(heaps[operation], (vstart + costs.get(turn, 0.0), tenant, waiting))
        elif turn not in been_to:
            taking.idle.append(turn)
    return heaps


async def _take(transaction: Transaction, asked: Asked, picked: Sequence[Turn], taking: Taking) -> list[_Taken]:
    """Take the jobs out of the ready ones and lease them, in the order picked."""
    if not picked:
        return []
    wishes = [(*turn, count, _queue_limit_ms(asked, turn)) for turn, count in sorted(Counter(picked).items())]
    by_turn: dict[Turn, list[_Taken]] = {turn: [] for turn in picked}
    time = asked.lease_time
    leasing = (asked.now, asked.request.worker_id, time.now, time.length)
    for row in await transaction.rows("lease_ready", *columns(wishes, 4), *leasing):
        by_turn[row[0], row[1]].append(_taken(row))
    turns = {turn: iter(jobs) for turn, jobs in by_turn.items()}
    taken = [job for turn in picked if (job := next(turns[turn], None)) is not None]
    taking.served += [job.place.turn for job in taken]
    return taken


def _queue_limit_ms(asked: Asked, turn: Turn) -> int | None:
    limit_s = asked.request.policies.get(turn[0], DEFAULT_POLICY).queue_limit_s
    return None if limit_s is None else math.ceil(limit_s * 1000)


def _taken(row: Row) -> _Taken:
    fixed_from, payload_from = 4 + MOVING_COLUMNS, 4 + MOVING_COLUMNS + FIXED_COLUMNS
    waited, fixed = Moving._make(row[4:fixed_from]), Fixed._make(row[fixed_from:payload_from])
    return _Taken(Place._make(row[:4]), waited, fixed, *row[payload_from:])


async def _end_overdue(transaction: Transaction, asked: Asked, taken: Sequence[_Taken]) -> list[_Taken]:
    """End the jobs that came too late to start; returns the others."""
    endings = Endings(transaction)
    for job in taken:
        if job.is_late:
            policy = asked.request.policies.get(job.place.operation, DEFAULT_POLICY)
            ending = overdue_ending(job.fixed.deadline_at, job.waited, policy, asked.now)
            assert ending is not None, "the statement and overdue_ending agree on who is late"
            endings.end_job(job.place, job.fixed, ending, asked.now)
    await endings.write()
    return [job for job in taken if not job.is_late]


async def _begin(transaction: Transaction, asked: Asked, started: Sequence[_Taken]) -> list[Claim]:
    if not started:
        return []
    timed = [job.place.job_id for job in started if _has_time_to_count(asked.request, job)]
    ran_ms = await ran_before_ms(transaction, timed)
    claims = [_claim(job, ran_ms.get(job.place.job_id, 0)) for job in started]
    await transaction.tell([(EventType.STARTED, claim.job) for claim in claims])
    for claim in claims:
        transaction.hint(WakeUpKind.CHANGED, claim.job.id)
    transaction.fault_point("claim-before-commit")
    return claims


def _has_time_to_count(request: ClaimRequest, job: _Taken) -> bool:
    policy = request.policies.get(job.place.operation, DEFAULT_POLICY)
    return policy.processing_max_s is not None and job.waited.attempt > 0


def _claim(job: _Taken, ran_ms: int) -> Claim:
    waited = job.waited
    running = Moving(
        available_at=waited.available_at,
        version=waited.version + 1,
        attempt=waited.attempt + 1,
        counted_attempts=waited.counted_attempts + 1,
        crashes=waited.crashes,
        is_alone=waited.is_alone,
        started_at=job.begins_at if waited.started_at is None else waited.started_at,
        updated_at=job.begins_at,
    )
    record = job_from_parts(job.place, job.fixed, running, Status.RUNNING)
    return Claim(Lease(record.id, record.attempt, job.token), record, job.payload, waited.is_alone, ran_ms)
