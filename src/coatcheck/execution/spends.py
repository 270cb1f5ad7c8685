"""Spends on the control side: counted under the lease, one after the other.

A job that has spent more than it may is stopped; what it spent stays counted.
"""

import asyncio

from coatcheck.core.costs import OTHER_KIND, Millionths, SpendTotals, left_after, millionths, units_of
from coatcheck.core.errors import ErrorInfo
from coatcheck.execution.asks import Asks, AttemptOver
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.frames import SpendAnswer, SpendAsk
from coatcheck.execution.held import HeldAttempt
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.observe.logs import get_logger
from coatcheck.store.records import Spending


class Spends:
    """Answers every ask of a runner, sooner or later."""

    def __init__(self, parts: WorkerParts, escalation: Escalation, asks: Asks) -> None:
        self._parts = parts
        self._escalation = escalation
        self._asks = asks
        self._log = get_logger("worker")

    def answer(self, runner: RunnerProcess, ask: SpendAsk) -> None:
        """Begin to answer."""
        attempt = runner.held.get(ask.seq)
        if attempt is None:
            runner.send(SpendAnswer(ask.call, None, True))
        else:
            self._asks.begin(self._answer(runner, attempt, ask))

    async def _answer(self, runner: RunnerProcess, attempt: HeldAttempt, ask: SpendAsk) -> None:
        attempt.spending = attempt.spending or asyncio.Lock()
        try:
            async with attempt.spending:
                # Numbers must come to the store in their order: an earlier one than the last is taken for a repeat.
                attempt.spends += 1
                totals = await self._count(attempt, self._spending(attempt, ask))
        except AttemptOver:
            runner.send(SpendAnswer(ask.call, None, True))
            return
        left = self._left(attempt, ask.kind, totals)
        if isinstance(left, ErrorInfo):
            self._log.warning("overspent", kind=ask.kind, code=left.code, detail=left.detail, **attempt.log_fields())
            self._escalation.exceed(attempt, left)
            runner.send(SpendAnswer(ask.call, None, True))
        else:
            runner.send(SpendAnswer(ask.call, None if left is None else units_of(left), False))

    async def _count(self, attempt: HeldAttempt, spending: Spending) -> SpendTotals:
        """What stands once the spend is stored."""

        async def spend() -> SpendTotals:
            totals = await self._parts.store.spend(spending)
            self._parts.fault_point("spent-before-answer")
            return totals

        totals = await self._asks.reach_store(attempt, spend, "spend_not_stored", kind=spending.kind)
        self._measure(attempt, spending)
        return totals

    def _spending(self, attempt: HeldAttempt, ask: SpendAsk) -> Spending:
        window = self._parts.directory.current_terms().window(ask.kind, self._parts.clock.now())
        whose = (attempt.job.tenant, attempt.job.operation)
        return Spending(attempt.lease, attempt.spends, ask.kind, millionths(ask.units), window, whose)

    def _left(self, attempt: HeldAttempt, kind: str, totals: SpendTotals) -> Millionths | ErrorInfo | None:
        caps = self._parts.directory.current_terms().caps(kind, attempt.job.tenant, attempt.job.operation)
        return left_after(kind, attempt.policy.spend_max.get(kind), caps, totals)

    def _measure(self, attempt: HeldAttempt, spending: Spending) -> None:
        kind = spending.kind if attempt.policy.names_kind(spending.kind) else OTHER_KIND
        self._parts.metrics.count("spent", units_of(spending.units), operation=attempt.job.operation, kind=kind)
