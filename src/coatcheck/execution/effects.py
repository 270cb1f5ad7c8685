"""Effects on the control side: looked up and recorded under the lease."""

from coatcheck.execution.asks import Asks, AttemptOver
from coatcheck.execution.frames import EffectAnswer, EffectAsk
from coatcheck.execution.held import HeldAttempt
from coatcheck.execution.parts import WorkerParts
from coatcheck.execution.runner_process import RunnerProcess


class Effects:
    """Answers every ask of a runner, sooner or later."""

    def __init__(self, parts: WorkerParts, asks: Asks) -> None:
        self._parts = parts
        self._asks = asks

    def answer(self, runner: RunnerProcess, ask: EffectAsk) -> None:
        """Begin to answer."""
        attempt = runner.held.get(ask.seq)
        if attempt is None:
            runner.send(EffectAnswer(ask.call, None, True))
        else:
            self._asks.begin(self._answer(runner, attempt, ask))

    async def _answer(self, runner: RunnerProcess, attempt: HeldAttempt, ask: EffectAsk) -> None:
        try:
            value = await self._asks.reach_store(
                attempt, lambda: self._ask_store(attempt, ask), "effect_not_stored", effect=ask.name
            )
        except AttemptOver:
            runner.send(EffectAnswer(ask.call, None, True))
        else:
            runner.send(EffectAnswer(ask.call, value, False))

    async def _ask_store(self, attempt: HeldAttempt, ask: EffectAsk) -> bytes | None:
        store = self._parts.store
        if ask.value is None:
            return await store.find_effect(attempt.lease, ask.name)
        return await store.record_effect(attempt.lease, ask.name, ask.value, self._parts.clock.now())
