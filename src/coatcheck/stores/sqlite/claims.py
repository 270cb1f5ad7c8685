"""The engine's ClaimStore: claiming, keeping leases alive, ending attempts, recording effects."""

from collections.abc import Iterator, Sequence

import msgspec

from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import (
    Beat,
    BeatAnswer,
    ClaimRequest,
    Claims,
    Finished,
    Finishing,
    Lease,
    WakeUpKind,
)
from coatcheck.stores.sqlite.claiming import claim
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.rows import EndedLease, Row
from coatcheck.stores.sqlite.settling import Settling, settle_leases
from coatcheck.stores.sqlite.transaction import Transaction
from coatcheck.stores.sqlite.turns import restore_tenants

_LEASES: msgspec.json.Decoder[list[EndedLease]] = msgspec.json.Decoder(list[EndedLease])


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
        job = await self._writer.run_bulk(finish, (finishing, now))
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


def finish(transaction: Transaction, finishings: Sequence[tuple[Finishing, InstantMs]]) -> Sequence[JobRecord | None]:
    """Settle attempts under their leases, each at its own moment; None for one whose lease is lost."""
    named = [(lease.job_id, lease.attempt, lease.token) for lease in (finishing.lease for finishing, _ in finishings)]
    leases = _end_leases(transaction, named)
    settlings: list[Settling] = []
    is_settled: list[bool] = []
    limited: set[str] = set()
    for name, (finishing, now) in zip(named, finishings, strict=True):
        # The same lease a second time is a lost one.
        lease = leases.pop(name, None)
        is_settled.append(lease is not None)
        if lease is not None:
            limited |= {lease.tenant} if finishing.is_limited else set()
            settlings.append(Settling(lease, finishing.outcome, finishing.policy, finishing.jitter, now))
    jobs = iter(settle_leases(transaction, settlings))
    if limited:
        restore_tenants(transaction, sorted(limited))
    return [next(jobs) if is_own else None for is_own in is_settled]


def _end_leases(transaction: Transaction, named: Sequence[Row]) -> dict[Row, EndedLease]:
    """Delete leases; returns those that were there, by job, attempt and token."""
    found = transaction.read_many("open_leases", named, _LEASES)
    leases = {(lease.job_id, lease.attempt, lease.token): lease for lease in found}
    deleted = transaction.run_many("end_leases", named) if leases else 0
    assert deleted == len(leases), "a lease belongs to an open job"
    return leases


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
