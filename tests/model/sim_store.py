"""The embedded store as a simulated process has it: commits on the loop, wake-ups that get lost, reads that fail."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from random import Random

from coatcheck.core.costs import SpendTotals
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.clock import Clock
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import (
    Accepted,
    Beat,
    BeatAnswer,
    ClaimRequest,
    Claims,
    Disposition,
    Finished,
    Finishing,
    Lease,
    Spending,
    Submission,
    Tombstone,
    WakeUp,
)
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.stores.sqlite.writer import Member, Writer, WriterParts

from .sim_faults import COMMITTED, NodeFaults
from .sim_record import Record

COMMIT_S_MAX = 0.02


class InlineWriter(Writer):
    """The writer's turns on the event loop, each a while after the first action that it waits for."""

    def __init__(self, parts: WriterParts, faults: NodeFaults, random: Random) -> None:
        super().__init__(parts)
        self._faults = faults
        self._random = random
        self._is_due = False

    def start(self) -> None:
        pass

    def is_alive(self) -> bool:
        return True

    async def close(self) -> None:
        self._is_closed = True
        while not self._queue.empty():
            self._turn()
        # What was committed is delivered first, as it is where a thread commits.
        await asyncio.sleep(0)

    def _enqueue(self, member: Member) -> None:
        super()._enqueue(member)
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(self._random.random() * COMMIT_S_MAX, self._commit_gathered)

    def _commit_gathered(self) -> None:
        self._is_due = False
        if not self._queue.empty():
            self._turn()
            self._faults.pass_point(COMMITTED)
            self._faults.pass_point(COMMITTED)


class SimulatedStore(SqliteStore):
    """One process's store. It notes what was accepted and claimed, and blames each write under a lease that is lost."""

    def __init__(
        self,
        config: SqliteConfig,
        clock: Clock,
        faults: NodeFaults,
        random: Random,
        record: Record,
    ) -> None:
        super().__init__(config, clock, faults.pass_point)
        self._faults = faults
        self._random = random
        self._record = record

    async def accept_job(self, submission: Submission) -> Disposition:
        brought_s = self.clock.monotonic_s()
        disposition = await super().accept_job(submission)
        if isinstance(disposition, Accepted):
            self._record.accepted(submission.job_id, brought_s)
        return disposition

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        asked_s = self.clock.monotonic_s()
        claims = await super().claim_ready(request, now)
        for claim in claims.claims:
            self._record.claimed(claim.lease, asked_s)
        return claims

    async def extend_leases(self, beats: Sequence[Beat], now: InstantMs) -> Sequence[BeatAnswer]:
        sent_s, were_old = self.clock.monotonic_s(), [self._record.is_old(beat.lease) for beat in beats]
        answers = await super().extend_leases(beats, now)
        for beat, was_old, answer in zip(beats, were_old, answers, strict=True):
            if answer is not BeatAnswer.LOST:
                self._record.kept(beat.lease, sent_s)
                self._check(beat.lease, was_old, "was kept")
        return answers

    async def finish_attempt(self, finishing: Finishing, now: InstantMs) -> Finished:
        was_old = self._record.is_old(finishing.lease)
        self._record.endings.add((finishing.lease.job_id, finishing.lease.attempt))
        finished = await super().finish_attempt(finishing, now)
        self._check(finishing.lease, was_old or finished.job.attempt != finishing.lease.attempt, "ended its job")
        return finished

    async def record_effect(self, lease: Lease, name: str, value: bytes, now: InstantMs) -> bytes:
        was_old = self._record.is_old(lease)
        recorded = await super().record_effect(lease, name, value, now)
        self._check(lease, was_old, "recorded an effect")
        return recorded

    async def spend(self, spending: Spending) -> SpendTotals:
        was_old = self._record.is_old(spending.lease)
        totals = await super().spend(spending)
        self._check(spending.lease, was_old, "spent something")
        return totals

    def _check(self, lease: Lease, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self._record.blame(f"a lost lease {what}: {lease.job_id} attempt {lease.attempt}")

    async def find_job(self, tenant: str, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        if self._faults.is_file_gone:
            raise StoreUnavailable("the file cannot be read (simulated)")
        return await super().find_job(tenant, job_id, now)

    def listen(self, callback: Callable[[WakeUp], None]) -> Callable[[], None]:
        def hear(wake_up: WakeUp) -> None:
            lot = self._random.random()
            if lot >= self._faults.lost_share:
                callback(wake_up)
            if lot > 0.95:
                asyncio.get_running_loop().call_later(lot, callback, wake_up)

        return super().listen(hear)

    def _make_writer(self, parts: WriterParts) -> Writer:
        return InlineWriter(parts, self._faults, self._random)

    def sever(self) -> None:
        """What the kernel does when the process is gone: its files are closed, its locks and transactions over.

        Its socket's name stays behind, as after a SIGKILL. What the process closed itself stays closed.
        """
        writer, readers, wakeups = self._writer, self._readers, self._wakeups
        writer._is_closed = readers._is_closed = True
        readers._pool.shutdown()
        writer._parts.connection.close(True)
        for connection in readers._connections:
            connection.close(True)
        readers._inline.close()
        if wakeups._socket.fileno() >= 0:
            wakeups._loop.remove_reader(wakeups._socket)
            wakeups._socket.close()
        for let_go in (writer._parts.turnstile.close, writer._parts.mark.close, self._relay_turn.close):
            with contextlib.suppress(OSError):
                let_go()
