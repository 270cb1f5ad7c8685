"""The life of attempts on the control side: begun from a claim, told of by their runner, ended with an outcome."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from coatcheck.core.job import Progress
from coatcheck.core.outcome import Lost, Outcome, Released
from coatcheck.core.policy import RunsIn
from coatcheck.execution.effects import Effects
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.finishing import Finisher
from coatcheck.execution.frames import (
    Done,
    EffectAsk,
    ImportFailed,
    LoopBlocked,
    ProgressMade,
    Ready,
    SpendAsk,
    ToControl,
)
from coatcheck.execution.heartbeats import Heartbeats
from coatcheck.execution.held import HeldAttempt, Ledger, Phase, StopReason
from coatcheck.execution.outcomes import outcome_of, outcome_of_reason
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.placement import Placement
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.execution.spends import Spends
from coatcheck.observe.logs import get_logger
from coatcheck.store.records import Claim


@dataclass(frozen=True, slots=True)
class Rooms:
    """Whom the attempts call on."""

    escalation: Escalation
    heartbeats: Heartbeats
    effects: Effects
    spends: Spends


class Attempts:
    """Hears from all runners. `on_place` is called whenever another attempt might start."""

    placement: Placement

    def __init__(self, parts: WorkerParts, ledger: Ledger, finisher: Finisher, rooms: Rooms) -> None:
        self._parts = parts
        self._ledger = ledger
        self._finisher = finisher
        self._escalation = rooms.escalation
        self._heartbeats = rooms.heartbeats
        self._effects = rooms.effects
        self._spends = rooms.spends
        self._numbers = itertools.count(1)
        self._policies = parts.app.policies
        self._is_closing = False
        self._log = get_logger("worker")
        self.on_place: Callable[[], None] = lambda: None

    def begin(self, claim: Claim, asked_s: float) -> None:
        """Keep the claim's lease and start its attempt. `asked_s`: when the claim was asked for, monotonic."""
        self._parts.fault_point("claimed-before-start")
        job = claim.job
        policy = self._policies.of(job.operation)
        attempt = HeldAttempt(
            seq=next(self._numbers),
            lease=claim.lease,
            job=job,
            payload=claim.payload,
            policy=policy,
            is_solo=claim.is_alone or policy.runs_in is RunsIn.PROCESS,
            started_s=self._parts.clock.monotonic_s(),
            kept_s=asked_s,
            ran_ms=claim.ran_ms,
        )
        self._ledger.add(attempt)
        if claim.lease.attempt == 1:
            waited_ms = self._parts.clock.now() - max(job.created_at, job.available_at)
            self._parts.metrics.observe("start_delay_seconds", max(0, waited_ms) / 1000, operation=job.operation)
        if self._is_closing:
            self._finisher.finish(attempt, Released())
        else:
            self.placement.place(attempt)

    def release_waiting(self) -> None:
        """Give back what has not started, and from now on whatever is claimed."""
        self._is_closing = True
        for attempt in self._ledger.in_phase(Phase.WAITING):
            self._finisher.finish(attempt, Released())

    def ask_all(self) -> None:
        """Tell every handler to stop; what does not end by its own is given back when its runner is killed."""
        self._is_closing = True
        for attempt in self._ledger.in_phase(Phase.RUNNING):
            self._escalation.ask(attempt, StopReason.RELEASE)

    def on_frames(self, runner: RunnerProcess, frames: Sequence[ToControl]) -> None:
        for frame in frames:
            try:
                self._hear(runner, frame)
            except Exception:
                # One frame that cannot be heeded must not cost the runner its channel.
                self._log.exception("frame_failed", runner=runner.number)
        if any(isinstance(frame, Done) for frame in frames):
            self.on_capacity()

    def _hear(self, runner: RunnerProcess, frame: ToControl) -> None:
        match frame:
            case Done():
                self._done(runner, frame)
            case ProgressMade():
                self._progress(runner, frame)
            case EffectAsk():
                self._effects.answer(runner, frame)
            case SpendAsk():
                self._spends.answer(runner, frame)
            case LoopBlocked():
                self._blocked(runner, frame)
            case Ready() | ImportFailed():
                # The runner itself hears these.
                pass
            case _:
                assert_never(frame)

    def on_capacity(self) -> None:
        self.placement.pump()
        self.on_place()

    def on_gone(self, runner: RunnerProcess) -> None:
        was_alone = len(runner.held) + len(runner.deaf) == 1
        held = list(runner.held.values())
        runner.held.clear()
        runner.deaf.clear()
        self.placement.forget(runner)
        if held:
            self._log.warning("runner_died", runner=runner.number, pid=runner.pid, attempts=len(held))
        for attempt in held:
            attempt.disarm()
            if attempt.phase is Phase.RUNNING:
                self._log.info("attempt_died", was_alone=was_alone, **attempt.log_fields())
                self._finisher.finish(attempt, self._outcome_of_death(attempt, was_alone))
        self.on_capacity()

    def _outcome_of_death(self, attempt: HeldAttempt, was_alone: bool) -> Outcome:
        if self._is_closing and attempt.stop_reason is not None:
            # It died because this worker goes away.
            return outcome_of_reason(attempt.stop_reason, attempt.limit)
        return Lost(is_blamed=was_alone, is_suspect=True)

    def _done(self, runner: RunnerProcess, done: Done) -> None:
        attempt = runner.held.pop(done.seq, None)
        if attempt is None:
            # It was fenced off before; whatever it says comes too late.
            runner.deaf.discard(done.seq)
        else:
            attempt.disarm()
            if attempt.phase is Phase.RUNNING:
                self._finisher.finish(attempt, outcome_of(done.verdict, attempt.stop_reason, attempt.limit))
        runner.kill_if_done()
        if not runner.held:
            self.placement.is_idle(runner)

    def _progress(self, runner: RunnerProcess, made: ProgressMade) -> None:
        attempt = runner.held.get(made.seq)
        if attempt is None or attempt.phase is not Phase.RUNNING:
            return
        if not attempt.has_progress:
            # The first sign of life from inside a handler: the closest control comes to its middle.
            attempt.has_progress = True
            self._parts.fault_point("mid-handler")
        self._heartbeats.note_progress(attempt, Progress(made.fraction, made.message))

    def _blocked(self, runner: RunnerProcess, blocked: LoopBlocked) -> None:
        attempt = None if blocked.seq is None else runner.held.get(blocked.seq)
        operation = "unknown" if attempt is None else attempt.job.operation
        fields = {"operation": operation} if attempt is None else attempt.log_fields()
        self._parts.metrics.count("loop_blocked", operation=operation)
        self._log.warning(
            "loop_blocked", runner=runner.number, blocked_s=blocked.blocked_s, where=blocked.where, **fields
        )
