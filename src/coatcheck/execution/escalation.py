"""Bounded endings: a handler over its time is asked to stop, and fenced off when it does not.

Fenced off means that its outcome is stored without it, and that its runner takes no new work and is killed as soon as
its neighbours are done; a process of the job's own is killed at once.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from operator import itemgetter

from coatcheck.core.errors import ErrorInfo
from coatcheck.core.job import InstantMs
from coatcheck.core.outcome import RAN_TOO_LONG, Cancelled
from coatcheck.execution.finishing import Finisher
from coatcheck.execution.frames import Stop
from coatcheck.execution.held import HeldAttempt, Ledger, Phase, StopReason
from coatcheck.execution.outcomes import outcome_of_reason
from coatcheck.execution.parts import WorkerParts
from coatcheck.observe.logs import get_logger

# The part of cancel_grace_s a handler gets; the rest is for the heartbeat that brings the request, and the commit.
CANCEL_SHARE = 0.7


class Escalation:
    """Watches the time of running attempts. `on_freed` is called when an attempt no longer needs its place."""

    def __init__(self, parts: WorkerParts, ledger: Ledger, finisher: Finisher) -> None:
        self._parts = parts
        self._ledger = ledger
        self._finisher = finisher
        self._loop = asyncio.get_running_loop()
        self._log = get_logger("worker")
        self.on_freed: Callable[[], None] = lambda: None

    def watch(self, attempt: HeldAttempt) -> None:
        """Let a running attempt be asked to stop when its job's deadline, the end of its job's processing time or its
        timeout comes, whichever is first."""
        ends: list[tuple[float, Callable[[], None]]] = []
        deadline_s, policy = self._seconds_to(attempt.job.deadline_at), attempt.policy
        if deadline_s is not None:
            ends.append((deadline_s, partial(self.ask, attempt, StopReason.DEADLINE)))
        if policy.processing_max_s is not None:
            left_s = max(0.0, policy.processing_max_s - attempt.ran_ms / 1000)
            ends.append((left_s, partial(self.exceed, attempt, RAN_TOO_LONG)))
        if policy.timeout_s is not None:
            ends.append((policy.timeout_s, partial(self.ask, attempt, StopReason.TIMEOUT)))
        if ends:
            # The first of those that come at once: no timeout is retried where nothing is left for another attempt.
            attempt.timer = self._loop.call_later(*min(ends, key=itemgetter(0)))

    def cancel(self, attempt: HeldAttempt) -> None:
        """A client asked to cancel the job."""
        if attempt.phase is Phase.WAITING:
            self._finisher.finish(attempt, Cancelled())
        else:
            self.ask(attempt, StopReason.CANCEL)

    def lose(self, attempt: HeldAttempt) -> None:
        """The lease is gone: stop the handler, write nothing any more."""
        if attempt.phase not in (Phase.WAITING, Phase.RUNNING):
            return
        self._parts.metrics.count("leases_lost", operation=attempt.job.operation)
        self._log.warning("lease_lost", **attempt.log_fields())
        self.ask(attempt, StopReason.LOST)
        self._ledger.remove(attempt)

    def exceed(self, attempt: HeldAttempt, limit: ErrorInfo) -> None:
        """The job has used up what it may: stop the handler. The job ends failed with this error."""
        attempt.limit = limit
        self.ask(attempt, StopReason.LIMIT)

    def ask(self, attempt: HeldAttempt, reason: StopReason) -> None:
        """Tell the handler to stop, once; the first reason stands, unless the lease is lost."""
        runner = attempt.runner
        if attempt.phase is not Phase.RUNNING or runner is None:
            return
        if attempt.stop_reason is None:
            runner.send(Stop(attempt.seq))
        elif reason is not StopReason.LOST:
            return
        attempt.stop_reason = reason
        attempt.disarm()
        attempt.timer = self._loop.call_later(self._grace_s(attempt, reason), self._fence, attempt)

    def _fence(self, attempt: HeldAttempt) -> None:
        runner, reason = attempt.runner, attempt.stop_reason
        if runner is None or reason is None or runner.held.pop(attempt.seq, None) is None:
            return
        attempt.timer = None
        self._log.warning("handler_deaf", reason=reason, runner=runner.number, **attempt.log_fields())
        runner.deaf.add(attempt.seq)
        # First the process, where it may be killed at once: then nothing overlaps the next attempt.
        runner.retire()
        if reason is not StopReason.LOST:
            self._finisher.finish(attempt, outcome_of_reason(reason, attempt.limit))
        self.on_freed()

    def _grace_s(self, attempt: HeldAttempt, reason: StopReason) -> float:
        settings = self._parts.settings
        cancel_s = settings.cancel_grace_s * CANCEL_SHARE
        if attempt.is_solo:
            return min(cancel_s, settings.process_stop_s)
        return cancel_s if reason is StopReason.CANCEL else min(cancel_s, settings.attempt_stop_s)

    def _seconds_to(self, instant: InstantMs | None) -> float | None:
        return None if instant is None else max(0.0, (instant - self._parts.clock.now()) / 1000)
