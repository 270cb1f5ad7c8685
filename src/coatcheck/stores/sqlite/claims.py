"""Claiming in fair order, keeping leases alive, ending attempts, recording effects."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coatcheck.core import limits
from coatcheck.core.events import EventType
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.outcome import NEVER_STARTED, OVERDUE
from coatcheck.core.policy import DEFAULT_POLICY, Policy
from coatcheck.core.states import Status
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import (
    Beat,
    BeatAnswer,
    Claim,
    ClaimRequest,
    Claims,
    Finished,
    Finishing,
    Lease,
    WakeUpKind,
)
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.queue import Place, next_due_at, promote, take_ready
from coatcheck.stores.sqlite.rows import EndedLease, Moving
from coatcheck.stores.sqlite.settling import Ending, Settling, changed, end_job, settle_lease
from coatcheck.stores.sqlite.transaction import Transaction


class Claiming(Facet):
    """The engine's ClaimStore."""

    _rounds: Iterator[int]

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        operations = sorted(request.slots_by_operation)
        start = next(self._rounds) % max(len(operations), 1)
        rotated = operations[start:] + operations[:start]
        return await self._writer.run(lambda transaction: claim(transaction, request, rotated, now))

    async def extend_leases(self, beats: Sequence[Beat], now: InstantMs) -> Sequence[BeatAnswer]:
        if not beats:
            return ()
        return await self._writer.run(lambda transaction: [_beat(transaction, beat, now) for beat in beats])

    async def finish_attempt(self, finishing: Finishing, now: InstantMs) -> Finished:
        job = await self._writer.run(lambda transaction: finish(transaction, finishing, now))
        if job is None:
            raise LeaseLost(finishing.lease.job_id)
        return Finished(job)

    async def record_effect(self, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes:
        recorded = await self._writer.run(lambda transaction: _record_effect(transaction, lease, name, value, now))
        if recorded is None:
            raise LeaseLost(lease.job_id)
        return recorded

    async def find_effect(self, lease: Lease, name: str) -> bytes | None:
        row = self._readers.here(
            lambda snapshot: snapshot.row(
                "find_effect", job_id=lease.job_id, attempt=lease.attempt, token=lease.token, name=name
            )
        )
        if row is None:
            raise LeaseLost(lease.job_id)
        value: bytes | None = row[0]
        return value


@dataclass(slots=True)
class _Round:
    """What is left to take while a claim goes round the operations."""

    slots: int
    steps: int


def claim(transaction: Transaction, request: ClaimRequest, operations: Sequence[str], now: InstantMs) -> Claims:
    """Go round the operations, one job each, until the slots are full or nothing is ready."""
    promote(transaction, now, limits.SWEEP_BATCH_MAX)
    slots = {name: _slots(transaction, request, name) for name in operations}
    left = _Round(min(request.slots, limits.CLAIM_BATCH_MAX), 2 * limits.CLAIM_BATCH_MAX)
    claims: list[Claim] = []
    waiting = [name for name in operations if slots[name] > 0]
    while waiting and len(claims) < left.slots and left.steps > 0:
        for name in tuple(waiting):
            if len(claims) >= left.slots:
                break
            left.steps -= 1
            policy = request.policies.get(name, DEFAULT_POLICY)
            step = _claim_next(transaction, request.worker_id, name, policy, now)
            if isinstance(step, Claim):
                claims.append(step)
                slots[name] -= 1
            if step is None or slots[name] == 0:
                waiting.remove(name)
    if claims:
        transaction.fault_point("claim-before-commit")
    return Claims(claims, next_due_at(transaction))


def finish(transaction: Transaction, finishing: Finishing, now: InstantMs) -> JobRecord | None:
    """Settle an attempt under its lease; None where the lease is lost."""
    lease = finishing.lease
    row = transaction.row("end_lease", job_id=lease.job_id, attempt=lease.attempt, token=lease.token)
    if row is None:
        return None
    settling = Settling(finishing.outcome, finishing.policy, finishing.jitter)
    return settle_lease(transaction, lease.job_id, EndedLease(*row), settling, now)


def _slots(transaction: Transaction, request: ClaimRequest, operation: str) -> int:
    wanted = request.slots_by_operation[operation]
    largest = request.policies.get(operation, DEFAULT_POLICY).concurrency_max
    if largest is None:
        return wanted
    running: int = transaction.rows("count_running", operation=operation)[0][0]
    return max(0, min(wanted, largest - running))


def _claim_next(
    transaction: Transaction, worker_id: str, operation: str, policy: Policy, now: InstantMs
) -> Claim | JobRecord | None:
    """Take the job whose turn it is: a Claim, or the record of one that came too late and failed; None: no work."""
    turn = transaction.row("next_turn", operation=operation)
    if turn is None:
        return None
    tenant: str = turn[0]
    row = transaction.row("next_ready", operation=operation, tenant=tenant)
    if row is None:
        # A turn without ready work would stand at the head for ever.
        transaction.run("drop_turn", operation=operation, tenant=tenant)
        return None
    priority, job_id, deadline_at = row
    place = Place(operation, tenant, priority, job_id)
    moving = take_ready(transaction, place)
    assert moving is not None, "the row was read in this transaction"
    transaction.run("advance_turn", operation=operation, tenant=tenant)
    transaction.run("forget_turns", operation=operation)
    overdue = overdue_ending(deadline_at, moving, policy, now)
    if overdue is not None:
        return end_job(transaction, job_id, overdue, now)
    return _lease(transaction, worker_id, place, moving, now)


def overdue_ending(deadline_at: InstantMs | None, moving: Moving, policy: Policy, now: InstantMs) -> Ending | None:
    """How a waiting job ends that came too late to start, or None where it may start."""
    if deadline_at is not None and deadline_at <= now:
        return Ending(Status.FAILED, policy, moving, error=OVERDUE, is_dead_letter=True)
    limit_s = policy.queue_limit_s
    if limit_s is not None and moving.attempt == 0 and moving.available_at + limit_s * 1000 <= now:
        return Ending(Status.FAILED, policy, moving, error=NEVER_STARTED, is_dead_letter=True)
    return None


def _lease(transaction: Transaction, worker_id: str, place: Place, moving: Moving, now: InstantMs) -> Claim:
    lease = Lease(place.job_id, moving.attempt + 1, secrets.token_hex(12))
    transaction.run(
        "insert_lease",
        job_id=place.job_id,
        operation=place.operation,
        tenant=place.tenant,
        priority=place.priority,
        token=lease.token,
        worker_id=worker_id,
        available_at=moving.available_at,
        version=moving.version + 1,
        attempt=lease.attempt,
        counted_attempts=moving.counted_attempts + 1,
        crashes=moving.crashes,
        is_alone=int(moving.is_alone),
        started_at=moving.started_at if moving.started_at is not None else now,
        now=now,
    )
    payload: bytes = transaction.rows("read_payload", job_id=place.job_id)[0][0]
    job = changed(transaction, place.job_id, EventType.STARTED, now)
    return Claim(lease, job, payload, moving.is_alone)


def _beat(transaction: Transaction, beat: Beat, now: InstantMs) -> BeatAnswer:
    lease, progress = beat.lease, beat.progress
    if progress is None:
        row = transaction.row("beat", job_id=lease.job_id, attempt=lease.attempt, token=lease.token)
    else:
        row = transaction.row(
            "beat_with_progress",
            job_id=lease.job_id,
            attempt=lease.attempt,
            token=lease.token,
            now=now,
            fraction=progress.fraction,
            message=progress.message,
        )
        transaction.hint(WakeUpKind.CHANGED, lease.job_id)
    if row is None:
        return BeatAnswer.LOST
    return BeatAnswer.CANCEL if row[0] else BeatAnswer.GO_ON


def _record_effect(transaction: Transaction, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes | None:
    named = {"job_id": lease.job_id, "attempt": lease.attempt, "token": lease.token, "name": name}
    transaction.run("record_effect", value=value, now=now, **named)
    row = transaction.row("find_effect", **named)
    return None if row is None else row[0]
