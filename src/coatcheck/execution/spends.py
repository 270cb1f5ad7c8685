"""Spends on the control side: counted under the lease, one after the other, tried again while the store is away.

A job that has spent more than it may is stopped; what it spent stays counted.
"""

import asyncio

from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import OTHER_KIND, Millionths, SpendTotals, left_after, millionths, units_of
from coatcheck.core.errors import ErrorInfo
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.frames import SpendAnswer, SpendAsk
from coatcheck.execution.held import HeldAttempt, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import LeaseLost, StoreUnavailable
from coatcheck.store.records import Spending

RETRY = Backoff(first_s=0.1, factor=2.0, max_s=2.0)


class Spends:
    """Answers every ask of a runner, sooner or later."""

    def __init__(self, parts: WorkerParts, escalation: Escalation) -> None:
        self._parts = parts
        self._escalation = escalation
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = get_logger("worker")

    def answer(self, runner: RunnerProcess, ask: SpendAsk) -> None:
        """Begin to answer."""
        attempt = runner.held.get(ask.seq)
        if attempt is None:
            runner.send(SpendAnswer(ask.call, None, True))
            return
        task = asyncio.get_running_loop().create_task(self._answer(runner, attempt, ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def give_up(self) -> None:
        """Stop trying."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, runner: RunnerProcess, attempt: HeldAttempt, ask: SpendAsk) -> None:
        attempt.spending = attempt.spending or asyncio.Lock()
        async with attempt.spending:
            # Numbers must come to the store in their order: an earlier one than the last is taken for a repeat.
            attempt.spends += 1
            totals = await self._count(attempt, self._spending(attempt, ask))
        left = None if totals is None else self._left(attempt, ask.kind, totals)
        if isinstance(left, ErrorInfo):
            self._log.warning("overspent", kind=ask.kind, code=left.code, detail=left.detail, **attempt.log_fields())
            self._escalation.exceed(attempt, left)
        if totals is None or isinstance(left, ErrorInfo):
            runner.send(SpendAnswer(ask.call, None, True))
        else:
            runner.send(SpendAnswer(ask.call, None if left is None else units_of(left), False))

    async def _count(self, attempt: HeldAttempt, spending: Spending) -> SpendTotals | None:
        """What stands once the spend is stored; None where the attempt may not go on."""
        tries = 0
        while attempt.phase is Phase.RUNNING:
            try:
                totals = await self._parts.store.spend(spending)
                self._parts.fault_point("spent-before-answer")
            except LeaseLost:
                self._escalation.lose(attempt)
                break
            except StoreUnavailable:
                tries += 1
                await asyncio.sleep(RETRY.ceiling_s(tries))
            except Exception:
                # Without an answer the handler would wait until its timeout.
                self._log.exception("spend_not_stored", kind=spending.kind, **attempt.log_fields())
                self._escalation.lose(attempt)
                break
            else:
                self._measure(attempt, spending)
                return totals
        return None

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
