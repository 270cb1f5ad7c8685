"""The engine's ClaimStore: claiming, keeping leases alive, ending attempts, recording effects."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import TypeAlias

from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.outcome import Succeeded
from coatcheck.store.errors import LeaseLost, StoreUnavailable
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
from coatcheck.stores.postgres.claiming import Asked, LeaseTime, Taking, claim
from coatcheck.stores.postgres.costs import ran_before_ms
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.queue import advance_turns, leave_turns
from coatcheck.stores.postgres.rows import EndedLease, Fixed, Row, columns, plain
from coatcheck.stores.postgres.settling import SUCCESS_COLUMNS, Endings, Settling, Success
from coatcheck.stores.postgres.transaction import Transaction
from coatcheck.stores.postgres.turns import restore_tenant, withhold_turns

_LEASE_COLUMNS = 15
_PART_OF_LEASE_FOR_TURNS = 0.2

Kept: TypeAlias = tuple[Sequence[Beat], InstantMs, LeaseTime]
Ended: TypeAlias = tuple[Finishing, InstantMs]
Recorded: TypeAlias = tuple[Lease, str, bytes, InstantMs]


class Claiming(Facet):
    """The engine's ClaimStore."""

    _rounds: Iterator[int]
    _keeping: set[asyncio.Task[None]]

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        operations = sorted(request.slots_by_operation)
        start = next(self._rounds) % max(len(operations), 1)
        rotated = operations[start:] + operations[:start]
        # The turns are to show what the claim before took.
        await self.turns_kept()
        lane = self._work if _counts_running(request) else self._claims
        taking = await lane.run(claim_all, Asked(request, rotated, now, self._lease_time()))
        if taking.held:
            await self._guarded("turns_not_withheld", withhold_turns(self._transactions, taking.held, request.terms))
        if taking.served or taking.idle:
            # The jobs start meanwhile.
            self._keep(self._guarded("turns_not_kept", self._move_turns(taking)))
        return taking.claims

    async def extend_leases(self, beats: Sequence[Beat], now: InstantMs) -> Sequence[BeatAnswer]:
        if not beats:
            return ()
        try:
            return await self._work.run(keep, (beats, now, self._lease_time()))
        except StoreUnavailable:
            self._connections.note_failure()
            raise

    async def finish_attempt(self, finishing: Finishing, now: InstantMs) -> Finished:
        job = await self._work.run(finish, (finishing, now))
        if job is None:
            raise LeaseLost(finishing.lease.job_id)
        if finishing.is_limited:
            await self._guarded("turns_not_restored", restore_tenant(self._transactions, job.tenant))
        return Finished(job)

    async def record_effect(self, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes:
        recorded = await self._work.run(record_effects, (lease, plain(name), value, now))
        if recorded is None:
            raise LeaseLost(lease.job_id)
        return recorded

    async def find_effect(self, lease: Lease, name: str) -> bytes | None:
        rows = await self._transactions.read("find_effect", lease.job_id, lease.attempt, lease.token, plain(name))
        if not rows:
            raise LeaseLost(lease.job_id)
        value: bytes | None = rows[0][0]
        return value

    async def turns_kept(self) -> None:
        """Return when the turns show what claims of this process took that have returned."""
        if self._keeping:
            await asyncio.wait(self._keeping)

    async def _move_turns(self, taking: Taking) -> None:
        await advance_turns(self._transactions, taking.costs)
        await leave_turns(self._transactions, {*taking.drained, *taking.idle})

    def _keep(self, moving: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(moving)
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)

    async def _guarded(self, event: str, turning: Awaitable[None]) -> None:
        """What was committed before stands whatever becomes of this: turns that stay as they were cost fairness, and
        upkeep looks at those that stay held.

        Leases run meanwhile that nobody keeps yet, or the next claim waits: a process that was stopped with a turn
        locked must not cost others what they claimed.
        """
        try:
            async with asyncio.timeout(self._config.lease_s * _PART_OF_LEASE_FOR_TURNS):
                await turning
        except Exception as error:
            self._log.warning(event, error=str(error) or type(error).__name__)

    def _lease_time(self) -> LeaseTime:
        lease_clock = self._config.lease_clock
        return LeaseTime(round(self._config.lease_s * 1000), None if lease_clock is None else lease_clock())


def _counts_running(request: ClaimRequest) -> bool:
    """Whether a claim has to see the endings that wait: they make room under what bounds running jobs."""
    bounded = any(policy.concurrency_max is not None for policy in request.policies.values())
    return bounded or not request.terms.holds_nobody


async def claim_all(transaction: Transaction, asked: Sequence[Asked]) -> Sequence[Taking]:
    """Claims that met in one commit, one after the other: each sees what those before it took."""
    return [await claim(transaction, one) for one in asked]


async def finish(transaction: Transaction, ended: Sequence[Ended]) -> Sequence[JobRecord | None]:
    """Settle attempts under their leases; None where the lease is lost, to a neighbour in the batch as to anyone."""
    leases = {(f.lease.job_id, f.lease.attempt, f.lease.token): n for n, (f, _) in reversed(list(enumerate(ended)))}
    answers: list[JobRecord | None] = [None] * len(ended)
    endings = Endings(transaction)
    successes: dict[Row, Success] = {}
    others: list[Row] = []
    for lease, n in leases.items():
        finishing, now = ended[n]
        if isinstance(finishing.outcome, Succeeded):
            successes[lease] = Success.of(finishing.outcome.result, finishing.policy, now)
        else:
            others.append(lease)
    named = [success.row(lease) for lease, success in successes.items()]
    for row in await transaction.rows("end_succeeded", *columns(named, SUCCESS_COLUMNS)) if named else ():
        lease = row[0], row[1], row[2]
        answers[leases[lease]] = endings.note_success(*lease_and_job(row), successes[lease])
    rows = await transaction.rows("end_leases", *columns(others, 3)) if others else ()
    timed = {f.lease.job_id for f, _ in ended if f.policy.processing_max_s is not None}
    earlier_ms = await ran_before_ms(transaction, [row[0] for row in rows if row[0] in timed])
    for row in rows:
        place = leases[row[0], row[1], row[2]]
        finishing, now = ended[place]
        settling = Settling(finishing.outcome, finishing.policy, finishing.jitter, earlier_ms.get(row[0], 0))
        answers[place] = endings.settle_lease(*lease_and_job(row), settling, now)
    await endings.write()
    return answers


def lease_and_job(row: Row) -> tuple[EndedLease, Fixed]:
    """A row of end_leases, end_succeeded or rescue_leases."""
    return EndedLease._make(row[:_LEASE_COLUMNS]), Fixed._make(row[_LEASE_COLUMNS:])


async def keep(transaction: Transaction, kept: Sequence[Kept]) -> Sequence[Sequence[BeatAnswer]]:
    """Keep leases alive, whoever asked, in as few statements as no lease is named twice in."""
    answers = [[BeatAnswer.LOST] * len(beats) for beats, _, _ in kept]
    left = [(n, m, beat, now) for n, (beats, now, _) in enumerate(kept) for m, beat in enumerate(beats)]
    lease_time = kept[-1][2]
    while left:
        first: dict[tuple[str, int, str], tuple[int, int, Beat, InstantMs]] = {}
        others = []
        for item in left:
            lease = item[2].lease
            if first.setdefault((lease.job_id, lease.attempt, lease.token), item) is not item:
                others.append(item)
        rows = [_beat_row(beat, now) for _, _, beat, now in first.values()]
        for row in await transaction.rows("beat", *columns(rows, 7), lease_time.now, lease_time.length):
            n, m, beat, _ = first[row[0], row[1], row[2]]
            answers[n][m] = BeatAnswer.CANCEL if row[3] else BeatAnswer.GO_ON
            if beat.progress is not None:
                transaction.hint(WakeUpKind.CHANGED, beat.lease.job_id)
        left = others
    return answers


def _beat_row(beat: Beat, now: InstantMs) -> Row:
    lease, progress = beat.lease, beat.progress
    told = (False, None, None) if progress is None else (True, progress.fraction, plain(progress.message))
    return lease.job_id, lease.attempt, lease.token, *told, now


async def record_effects(transaction: Transaction, recorded: Sequence[Recorded]) -> Sequence[bytes | None]:
    """Record effects once; what stands is read under the same lease. None where the lease is lost."""
    answers: list[bytes | None] = []
    for lease, name, value, now in recorded:
        named = (lease.job_id, lease.attempt, lease.token, name)
        await transaction.run("record_effect", *named, value, now)
        row = await transaction.row("find_effect", *named)
        answers.append(None if row is None else row[0])
    return answers
