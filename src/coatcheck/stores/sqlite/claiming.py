"""Taking jobs in fair order: whose turn it is is worked out first, then each tenant's jobs are taken together."""

import heapq
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coatcheck.core import limits
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.core.starts import Starts, Turn
from coatcheck.core.states import Status
from coatcheck.store.records import Claim, ClaimRequest, Claims, Lease, WakeUpKind
from coatcheck.stores.sqlite.costs import ran_before_ms
from coatcheck.stores.sqlite.queue import next_due_at, promote
from coatcheck.stores.sqlite.rows import Fixed, Moving, Place, Row, job_from_parts
from coatcheck.stores.sqlite.settling import Ended, end_jobs, is_excused, overdue_ending
from coatcheck.stores.sqlite.transaction import Transaction
from coatcheck.stores.sqlite.turns import next_turns

_TAKEN_MAX = 2 * limits.CLAIM_BATCH_MAX
_TOKEN_BYTES = 12
_MOVING_COLUMNS = 10


class _Taken(NamedTuple):
    """A job that left the ready ones and is not leased yet."""

    place: Place
    waited: Moving
    fixed: Fixed
    payload: bytes


def claim(transaction: Transaction, request: ClaimRequest, operations: Sequence[str], now: InstantMs) -> Claims:
    """Lease the next jobs, going round the operations, until the slots are full or nothing is ready."""
    promote(transaction, now, limits.SWEEP_BATCH_MAX)
    slots = {name: _slots(transaction, request, name) for name in operations}
    wanted = min(request.slots, limits.CLAIM_BATCH_MAX)
    starts = request.starts()
    started: list[_Taken] = []
    looked_at = 0
    while looked_at < _TAKEN_MAX:
        picked, has_more = _pick(transaction, starts, slots, wanted - len(started))
        taken = _take(transaction, starts, picked)
        looked_at += len(taken)
        in_time = [job for job in taken if not _end_overdue(transaction, request, job, now)]
        started += in_time
        for job in in_time:
            slots[job.place.operation] -= 1
        starts.settle(picked, (job.place.turn for job in in_time))
        if len(in_time) == len(picked) and not (picked and has_more and len(started) < wanted):
            break
    claims = _lease(transaction, request, started, now)
    return Claims(claims, next_due_at(transaction))


def _slots(transaction: Transaction, request: ClaimRequest, operation: str) -> int:
    wanted = request.slots_by_operation[operation]
    largest = request.policies.get(operation, DEFAULT_POLICY).concurrency_max
    if largest is None:
        return wanted
    running: int = transaction.rows("count_running", operation=operation)[0][0]
    return max(0, min(wanted, largest - running))


def _pick(transaction: Transaction, starts: Starts, slots: Mapping[str, int], wanted: int) -> tuple[list[Turn], bool]:
    """The operations and tenants of the next `wanted` starts, in order, and whether a tenant that may have no more of
    them was passed over. Nothing is taken yet.

    As many turns as starts are wanted are enough to know: each start goes to the lowest, which then rises.
    """
    turns: dict[str, list[tuple[float, str, int]]] = {}
    for name, free in slots.items():
        if free > 0 and wanted > 0:
            rows = next_turns(transaction, name, starts, min(free, wanted))
            turns[name] = [(vstart, tenant, waiting) for tenant, vstart, waiting in rows]
    left = dict(slots)
    picked: list[Turn] = []
    has_passed_over = False
    while len(picked) < wanted and any(turns.values()):
        for name in [name for name, heap in turns.items() if heap][: wanted - len(picked)]:
            heap = turns[name]
            vstart, tenant, waiting = heap[0]
            if not starts.is_free and not starts.may_start((name, tenant)):
                has_passed_over = True
                heapq.heappop(heap)
                continue
            starts.start((name, tenant))
            picked.append((name, tenant))
            left[name] -= 1
            if left[name] == 0:
                heap.clear()
            elif waiting > 1:
                heapq.heapreplace(heap, (vstart + starts.cost(tenant), tenant, waiting - 1))
            else:
                heapq.heappop(heap)
    return picked, has_passed_over


def _take(transaction: Transaction, starts: Starts, picked: Sequence[Turn]) -> list[_Taken]:
    """Take the jobs out of the ready ones, in the order picked."""
    by_turn = {turn: iter(_take_first(transaction, starts, turn, count)) for turn, count in Counter(picked).items()}
    for operation in {operation for operation, _ in by_turn}:
        transaction.run("forget_turns", operation=operation)
    taken = (next(by_turn[turn], None) for turn in picked)
    return [job for job in taken if job is not None]


def _take_first(transaction: Transaction, starts: Starts, turn: Turn, count: int) -> list[_Taken]:
    operation, tenant = turn
    rows = transaction.rows("next_ready", operation=operation, tenant=tenant, limit=count)
    taken = [_taken(operation, tenant, row) for row in rows]
    if taken:
        last = taken[-1].place
        transaction.run(
            "delete_next_ready", operation=operation, tenant=tenant, priority=last.priority, job_id=last.job_id
        )
        cost = len(taken) * starts.cost(tenant)
        transaction.run("advance_turn", operation=operation, tenant=tenant, count=len(taken), cost=cost)
    if len(taken) < count:
        transaction.run("recount_turn", operation=operation, tenant=tenant)
    return taken


def _taken(operation: str, tenant: str, row: Row) -> _Taken:
    priority, job_id, *_ = row
    waited = Moving.from_row(row[2:_MOVING_COLUMNS])
    return _Taken(
        Place(operation, tenant, priority, job_id), waited, Fixed._make(row[_MOVING_COLUMNS:-1]), payload=row[-1]
    )


def _end_overdue(transaction: Transaction, request: ClaimRequest, job: _Taken, now: InstantMs) -> bool:
    """End a job that came too late to start; whether it did."""
    policy = request.policies.get(job.place.operation, DEFAULT_POLICY)
    ending = overdue_ending(job.fixed.deadline_at, job.waited, policy, now)
    if ending is None or is_excused(transaction, job.place.tenant, ending, now):
        return False
    end_jobs(transaction, [Ended(job.place, job.fixed, ending, now)])
    return True


def _lease(transaction: Transaction, request: ClaimRequest, started: Sequence[_Taken], now: InstantMs) -> list[Claim]:
    if not started:
        return []
    tokens = os.urandom(_TOKEN_BYTES * len(started)).hex()
    size = 2 * _TOKEN_BYTES
    ran_ms = ran_before_ms(transaction, [job.place.job_id for job in started if _has_time_to_count(request, job)])
    claims = [
        _claim(job, tokens[size * n : size * (n + 1)], ran_ms.get(job.place.job_id, 0), now)
        for n, job in enumerate(started)
    ]
    transaction.run_many(
        "insert_lease", [_lease_row(request.worker_id, job, claim) for job, claim in zip(started, claims, strict=True)]
    )
    transaction.tell(EventType.STARTED, [claim.job for claim in claims])
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
        int(claim.is_alone),
        record.started_at,
        record.updated_at,
        record.updated_at,
    )
