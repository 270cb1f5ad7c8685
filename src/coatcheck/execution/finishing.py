"""Brings outcomes into the store. An outcome is kept and tried again until it is stored or its lease is lost."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import random

from coatcheck.core import limits
from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import OTHER_KIND, units_of
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import (
    Cancelled,
    Failed,
    Lost,
    Outcome,
    Released,
    RetryLater,
    Succeeded,
)
from coatcheck.core.states import Status
from coatcheck.execution.held import HeldAttempt, Ledger, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import LeaseLost, StoreUnavailable
from coatcheck.store.records import Finishing

RETRY = Backoff(first_s=0.1, factor=2.0, max_s=2.0)
_LABELS: dict[type[Outcome], str] = {
    Succeeded: "succeeded",
    Failed: "failed",
    RetryLater: "retry_later",
    Cancelled: "cancelled",
    Released: "released",
    Lost: "lost",
}


class Finisher:
    """Stores outcomes, each in a task of its own, so that they meet in one commit."""

    def __init__(self, parts: WorkerParts, ledger: Ledger) -> None:
        self._parts = parts
        self._ledger = ledger
        self._tasks: set[asyncio.Task[None]] = set()
        self._result_bytes = 0
        self._log = get_logger("worker")
        self._is_out_of_reach = False
        self.on_stored: Callable[[], None] = lambda: None

    @property
    def has_room(self) -> bool:
        """Whether more outcomes may come: what is not stored yet is bounded."""
        return len(self._tasks) < limits.UNSTORED_OUTCOMES_MAX and self._result_bytes < limits.UNSTORED_RESULT_BYTES_MAX

    def finish(self, attempt: HeldAttempt, outcome: Outcome) -> None:
        """Take over an attempt whose outcome is known."""
        attempt.disarm()
        attempt.phase = Phase.FINISHING
        task = asyncio.get_running_loop().create_task(self._run(attempt, outcome))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def give_up(self) -> None:
        """Stop trying. What is not stored keeps its lease until that runs out."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, attempt: HeldAttempt, outcome: Outcome) -> None:
        size = len(outcome.result.body) if isinstance(outcome, Succeeded) else 0
        self._result_bytes += size
        try:
            job = await self._store(attempt, outcome)
            self._parts.fault_point("complete-after-commit")
            self._count(attempt, outcome, job)
            await self._count_costs(attempt, job)
        except LeaseLost:
            self._parts.metrics.count("leases_lost", operation=attempt.job.operation)
            self._log.warning("lease_lost", outcome=_LABELS[type(outcome)], **attempt.log_fields())
        except Exception:
            # The store can keep no outcome of this attempt: its lease runs out, and the job is settled as lost.
            self._log.exception("outcome_not_stored", outcome=_LABELS[type(outcome)], **attempt.log_fields())
        finally:
            self._result_bytes -= size
            self._ledger.remove(attempt)
            self.on_stored()

    async def _store(self, attempt: HeldAttempt, outcome: Outcome) -> JobRecord:
        limits_of_tenant = self._parts.directory.current_terms().running(attempt.job.tenant, attempt.job.operation)
        jitter = random()  # noqa: S311 - spreads, hides nothing
        finishing = Finishing(attempt.lease, outcome, attempt.policy, jitter, is_limited=bool(limits_of_tenant))
        tries = 0
        while True:
            try:
                finished = await self._parts.store.finish_attempt(finishing, self._parts.clock.now())
            except StoreUnavailable as error:
                tries += 1
                if not self._is_out_of_reach:
                    self._is_out_of_reach = True
                    self._log.warning("store_unavailable", verb="finish_attempt", error=str(error))
                await asyncio.sleep(RETRY.ceiling_s(tries) * (0.5 + random() / 2))  # noqa: S311 - as above
            else:
                self._is_out_of_reach = False
                return finished.job

    def _count(self, attempt: HeldAttempt, outcome: Outcome, job: JobRecord) -> None:
        metrics, clock, operation = self._parts.metrics, self._parts.clock, job.operation
        label = _LABELS[type(outcome)]
        if isinstance(outcome, Failed):
            self._tell_why(attempt, outcome)
        metrics.count("attempts", operation=operation, outcome=label)
        seconds = clock.monotonic_s() - attempt.started_s
        metrics.observe("attempt_seconds", seconds, operation=operation, outcome=label)
        if job.status is Status.QUEUED:
            if not isinstance(outcome, Released):
                metrics.count("retries", operation=operation)
            return
        metrics.count("finished", operation=operation, status=job.status)
        finished_at = job.finished_at if job.finished_at is not None else clock.now()
        metrics.observe(
            "completion_seconds", (finished_at - job.created_at) / 1000, operation=operation, status=job.status
        )
        if job.dead_lettered_at is not None:
            category = "" if job.error is None else job.error.category
            metrics.count("dead_letters", operation=operation, category=category)
            self._log.warning("dead_lettered", category=category, **attempt.log_fields())

    async def _count_costs(self, attempt: HeldAttempt, job: JobRecord) -> None:
        """What a job cost is read only where there may be something; the metric is not worth another try."""
        if job.status is not Status.SUCCEEDED or not (attempt.policy.cost or attempt.spends):
            return
        with suppress(StoreUnavailable):
            for cost in await self._parts.store.list_job_costs(job.id):
                kind = cost.kind if attempt.policy.names_kind(cost.kind) else OTHER_KIND
                units = units_of(cost.charged + cost.spent)
                self._parts.metrics.count("cost_completed", units, operation=job.operation, kind=kind)

    def _tell_why(self, attempt: HeldAttempt, failed: Failed) -> None:
        """The operator's view of a failure: what the handler raised, which no client is shown."""
        error = failed.error
        self._log.warning(
            "attempt_failed",
            category=error.category,
            code=error.code,
            is_retryable=failed.is_retryable,
            detail=error.detail,
            error=error.operator_detail,
            **attempt.log_fields(),
        )
