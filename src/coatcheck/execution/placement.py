"""Brings attempts to runners. What is claimed can usually start at once; what cannot waits here, first come first."""

from collections import deque
from collections.abc import Callable

from coatcheck.core import limits
from coatcheck.core.outcome import OVERDUE, Failed, Released
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.finishing import Finisher
from coatcheck.execution.frames import Start
from coatcheck.execution.held import HeldAttempt, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.execution.shared_runners import SharedRunners
from coatcheck.execution.solo_runners import SoloRunners

GIVEN_BACK_DELAY_S = 5.0


class Placement:
    """All the runners of a worker."""

    def __init__(
        self,
        parts: WorkerParts,
        escalation: Escalation,
        finisher: Finisher,
        make: Callable[[bool], RunnerProcess],
    ) -> None:
        self._parts = parts
        self._escalation = escalation
        self._finisher = finisher
        self._waiting: deque[HeldAttempt] = deque()
        self.shared = SharedRunners(parts, lambda: make(False))
        self.shared.on_failed = self._give_waiting_back
        self.solo = SoloRunners(parts, lambda: make(True), self._assign, self.give_back)

    @property
    def free_shared(self) -> int:
        """Attempts that could start now in a shared runner. Those that must wait to run alone use up a place here."""
        if not self._finisher.has_room:
            return 0
        free = self.shared.free_slots - self.solo.waiting - len(self._waiting)
        return max(0, min(free, limits.CLAIM_BATCH_MAX))

    @property
    def free_solo(self) -> int:
        """Attempts that could start now in a process of their own."""
        return min(self.solo.free_slots, limits.CLAIM_BATCH_MAX) if self._finisher.has_room else 0

    def place(self, attempt: HeldAttempt) -> None:
        """Start the attempt, or keep it until there is a place for it."""
        if attempt.is_solo:
            self.solo.place(attempt)
            return
        runner = self.shared.pick()
        if runner is None:
            self._waiting.append(attempt)
        else:
            self._assign(runner, attempt)

    def pump(self) -> None:
        """Start what waits, as far as there are places."""
        while self._waiting and (runner := self.shared.pick()) is not None:
            attempt = self._waiting.popleft()
            if attempt.phase is Phase.WAITING:
                self._assign(runner, attempt)
        self.solo.pump()

    def give_back(self, attempt: HeldAttempt) -> None:
        """No runner can be started for an attempt now: perhaps another worker has one."""
        self._finisher.finish(attempt, Released(GIVEN_BACK_DELAY_S))

    def is_idle(self, runner: RunnerProcess) -> None:
        """A runner's last attempt ended."""
        if runner.spec.is_solo:
            self.solo.set_idle(runner)

    def forget(self, runner: RunnerProcess) -> None:
        """A runner has ended."""
        self.shared.forget(runner)
        self.solo.forget(runner)

    def _assign(self, runner: RunnerProcess, attempt: HeldAttempt) -> None:
        job = attempt.job
        if job.deadline_at is not None and job.deadline_at <= self._parts.clock.now():
            self._finisher.finish(attempt, Failed(OVERDUE, is_retryable=False))
            return
        if self._parts.clock.monotonic_s() - attempt.kept_s > self._parts.settings.lease_s:
            # This process stood still, or the store did: the job may be another worker's by now.
            self._finisher.finish(attempt, Released())
            return
        attempt.runner = runner
        attempt.phase = Phase.RUNNING
        attempt.started_s = self._parts.clock.monotonic_s()
        runner.held[attempt.seq] = attempt
        runner.send(
            Start(
                attempt.seq,
                job.id,
                job.chain_id,
                attempt.lease.attempt,
                job.tenant,
                job.operation,
                job.operation_version,
                job.correlation_id,
                job.deadline_at,
                attempt.payload,
            )
        )
        attempt.payload = b""
        self._escalation.watch(attempt)

    def _give_waiting_back(self) -> None:
        if any(runner.is_open for runner in self.shared.runners):
            return
        while self._waiting:
            attempt = self._waiting.popleft()
            if attempt.phase is Phase.WAITING:
                self.give_back(attempt)
