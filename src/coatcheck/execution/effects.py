"""Effects on the control side: looked up and recorded under the lease, tried again while the store is away."""

import asyncio

from coatcheck.core.backoff import Backoff
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.frames import EffectAnswer, EffectAsk
from coatcheck.execution.held import HeldAttempt, Phase
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerProcess
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import LeaseLost, StoreUnavailable

RETRY = Backoff(first_s=0.1, factor=2.0, max_s=2.0)


class Effects:
    """Answers every ask of a runner, sooner or later."""

    def __init__(self, parts: WorkerParts, escalation: Escalation) -> None:
        self._parts = parts
        self._escalation = escalation
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = get_logger("worker")

    def answer(self, runner: RunnerProcess, ask: EffectAsk) -> None:
        """Begin to answer."""
        attempt = runner.held.get(ask.seq)
        if attempt is None:
            runner.send(EffectAnswer(ask.call, None, True))
            return
        task = asyncio.get_running_loop().create_task(self._answer(runner, attempt, ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def give_up(self) -> None:
        """Stop trying."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, runner: RunnerProcess, attempt: HeldAttempt, ask: EffectAsk) -> None:
        tries = 0
        while attempt.phase is Phase.RUNNING:
            try:
                value = await self._reach_store(attempt, ask)
            except LeaseLost:
                self._escalation.lose(attempt)
                break
            except StoreUnavailable:
                tries += 1
                await asyncio.sleep(RETRY.ceiling_s(tries))
            except Exception:
                # Without an answer the handler would wait until its timeout.
                self._log.exception("effect_not_stored", effect=ask.name, **attempt.log_fields())
                self._escalation.lose(attempt)
                break
            else:
                runner.send(EffectAnswer(ask.call, value, False))
                return
        runner.send(EffectAnswer(ask.call, None, True))

    async def _reach_store(self, attempt: HeldAttempt, ask: EffectAsk) -> bytes | None:
        store = self._parts.store
        if ask.value is None:
            return await store.find_effect(attempt.lease, ask.name)
        return await store.record_effect(attempt.lease, ask.name, ask.value, self._parts.clock.now())
