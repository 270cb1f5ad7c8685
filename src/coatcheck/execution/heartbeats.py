"""Keeps leases alive, in one call of the store for all of them, and hears what is asked of their jobs.

Progress goes with the beats, gathered to at most PROGRESS_WRITES_PER_S_MAX writes a second for each job; what is still
on its way when a job ends goes with it. Never in a runner: no handler can stop a heartbeat.
"""

import asyncio
from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.job import Progress
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.held import HeldAttempt, Ledger, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Beat, BeatAnswer, WakeUp, WakeUpKind

# A little more than the limit asks for: commits do not take equally long.
PROGRESS_INTERVAL_S = 1.1 / limits.PROGRESS_WRITES_PER_S_MAX
RETRY_S = 0.5
SOONEST_S = 0.001


class Heartbeats:
    """The one beat of a worker."""

    def __init__(self, parts: WorkerParts, ledger: Ledger, escalation: Escalation) -> None:
        self._parts = parts
        self._ledger = ledger
        self._escalation = escalation
        self._clock = parts.clock
        self._log = get_logger("worker")
        self._woken = asyncio.Event()
        self._asked: set[HeldAttempt] = set()
        self._progressed: set[HeldAttempt] = set()
        self._next_beat_s = 0.0
        self._next_progress_s = 0.0
        self._is_out_of_reach = False

    def hint(self, wake_up: WakeUp) -> None:
        """Beat for jobs at once that somebody may have cancelled."""
        if wake_up.kind is not WakeUpKind.CANCEL:
            return
        for job_id in wake_up.job_ids:
            attempt = self._ledger.find_job(job_id)
            if attempt is not None:
                self._asked.add(attempt)
                self._woken.set()

    def note_progress(self, attempt: HeldAttempt, progress: Progress) -> None:
        """Store this progress with the next write that may carry it."""
        attempt.unsaved = progress
        if attempt not in self._progressed:
            self._progressed.add(attempt)
            self._woken.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        self._next_beat_s = self._clock.monotonic_s() + self._parts.settings.heartbeat_s
        while True:
            await self._wait()
            try:
                await self.turn()
            except Exception:
                # Whatever it is, the leases must not run out over it.
                self._log.exception("heartbeat_failed")
                self._next_beat_s = self._clock.monotonic_s() + RETRY_S

    async def turn(self) -> None:
        """Send every beat that is due now."""
        now_s = self._clock.monotonic_s()
        has_progress = now_s >= self._next_progress_s and bool(self._progressed)
        attempts: set[HeldAttempt] = self._asked
        self._asked = set()
        if has_progress:
            attempts |= self._progressed
        if now_s >= self._next_beat_s:
            self._next_beat_s = now_s + self._parts.settings.heartbeat_s
            attempts.update(self._ledger.all())
        if has_progress:
            self._next_progress_s = now_s + PROGRESS_INTERVAL_S
            self._progressed.clear()
        held = [attempt for attempt in attempts if attempt.phase is not Phase.OVER]
        for start in range(0, len(held), limits.COMMIT_BATCH_MAX):
            await self._beat(held[start : start + limits.COMMIT_BATCH_MAX], has_progress)

    async def _beat(self, attempts: Sequence[HeldAttempt], has_progress: bool) -> None:
        beats = []
        for attempt in attempts:
            progress = attempt.unsaved if has_progress and attempt.phase is Phase.RUNNING else None
            beats.append(Beat(attempt.lease, progress))
            if progress is not None:
                attempt.unsaved = None
        sent_s = self._clock.monotonic_s()
        try:
            answers = await self._parts.store.extend_leases(beats, self._clock.now())
        except StoreUnavailable as error:
            self._failed(attempts, beats, error)
            return
        self._is_out_of_reach = False
        for attempt, answer in zip(attempts, answers, strict=True):
            self._heed(attempt, answer, sent_s)

    def _heed(self, attempt: HeldAttempt, answer: BeatAnswer, sent_s: float) -> None:
        if answer is not BeatAnswer.LOST:
            attempt.kept_s = sent_s
        # An attempt whose outcome is on its way may be stored already; the store tells the Finisher.
        if attempt.phase not in (Phase.WAITING, Phase.RUNNING):
            return
        if answer is BeatAnswer.CANCEL:
            self._escalation.cancel(attempt)
        elif answer is BeatAnswer.LOST:
            self._escalation.lose(attempt)

    def _failed(self, attempts: Sequence[HeldAttempt], beats: Sequence[Beat], error: StoreUnavailable) -> None:
        """Whether the leases still hold is for the store to say, once it answers again: go on and try soon."""
        if not self._is_out_of_reach:
            self._is_out_of_reach = True
            self._log.warning("store_unavailable", verb="extend_leases", error=str(error))
        for attempt, beat in zip(attempts, beats, strict=True):
            if beat.progress is not None and attempt.unsaved is None:
                attempt.unsaved = beat.progress
                self._progressed.add(attempt)
        self._next_beat_s = min(self._next_beat_s, self._clock.monotonic_s() + RETRY_S)

    async def _wait(self) -> None:
        while True:
            self._woken.clear()
            due_s = self._next_beat_s
            if self._progressed:
                due_s = min(due_s, self._next_progress_s)
            left_s = due_s - self._clock.monotonic_s()
            if self._asked or left_s <= 0:
                return
            # A rest too small to move a clock would be waited for again and again.
            timer = asyncio.get_running_loop().call_later(max(left_s, SOONEST_S), self._woken.set)
            await self._woken.wait()
            timer.cancel()
