"""How a job in a runner reaches control: progress gathered on the way, effects and spends asked for and answered."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from coatcheck.core.job import Progress
from coatcheck.execution.frames import EffectAnswer, EffectAsk, ProgressMade, SpendAnswer, SpendAsk, ToControl
from coatcheck.store.clock import Clock

PROGRESS_INTERVAL_S = 0.1


class ProgressGatherer:
    """Sends each attempt's latest progress, at most once an interval however often it is reported."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[ToControl], None]) -> None:
        self._loop = loop
        self._send = send
        self._lock = threading.Lock()
        self._latest: dict[int, Progress] = {}
        self._is_pending = False

    def report(self, seq: int, progress: Progress) -> None:
        """Note an attempt's progress, from any thread."""
        with self._lock:
            self._latest[seq] = progress
            if self._is_pending:
                return
            self._is_pending = True
        self._loop.call_soon_threadsafe(self._flush)

    def forget(self, seq: int) -> None:
        """An attempt ended: nobody asks for its progress any more."""
        with self._lock:
            self._latest.pop(seq, None)

    def _flush(self) -> None:
        with self._lock:
            latest, self._latest = self._latest, {}
            self._is_pending = bool(latest)
        for seq, progress in latest.items():
            self._send(ProgressMade(seq, progress.fraction, progress.message))
        if latest:
            self._loop.call_later(PROGRESS_INTERVAL_S, self._flush)


Ask: TypeAlias = EffectAsk | SpendAsk
Answer = TypeVar("Answer", EffectAnswer, SpendAnswer)


class Calls:
    """Asks control and hands each answer to who asked. An ask is made by its caller from the call's number."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[ToControl], None]) -> None:
        self._loop = loop
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}

    def ask(self, make: Callable[[int], Ask], answer: "Future[Answer]") -> None:
        """Ask from the loop's thread; `answer` gets what comes back."""
        ask = make(next(self._numbers))
        self._waiting[ask.call] = answer
        self._send(ask)

    def ask_from_thread(self, make: Callable[[int], Ask], answer: "Future[Answer]") -> None:
        """Ask from any other thread."""
        self._loop.call_soon_threadsafe(self.ask, make, answer)

    def answered(self, answer: EffectAnswer | SpendAnswer) -> None:
        """Hand an answer over."""
        waiting = self._waiting.pop(answer.call, None)
        if waiting is not None and waiting.set_running_or_notify_cancel():
            waiting.set_result(answer)


class AttemptLine:
    """The line of one attempt; `is_stopped` once it was told to stop.

    Losing the lease stops it, and so does spending too much; either is raised as the cancellation it is.
    """

    def __init__(self, seq: int, clock: Clock, progress: ProgressGatherer, calls: Calls) -> None:
        self.clock = clock
        self.is_stopped = False
        self._seq = seq
        self._progress = progress
        self._calls = calls

    def report_progress(self, progress: Progress) -> None:
        self._progress.report(self._seq, progress)

    async def ask_effect(self, name: str, value: bytes | None) -> bytes | None:
        answer: Future[EffectAnswer] = Future()
        self._calls.ask(lambda call: EffectAsk(call, self._seq, name, value), answer)
        return _value(await asyncio.wrap_future(answer))

    def call_effect(self, name: str, value: bytes | None) -> bytes | None:
        answer: Future[EffectAnswer] = Future()
        self._calls.ask_from_thread(lambda call: EffectAsk(call, self._seq, name, value), answer)
        return _value(answer.result())

    async def ask_spend(self, kind: str, units: float) -> float | None:
        answer: Future[SpendAnswer] = Future()
        self._calls.ask(lambda call: SpendAsk(call, self._seq, kind, units), answer)
        return _left(await asyncio.wrap_future(answer))

    def call_spend(self, kind: str, units: float) -> float | None:
        answer: Future[SpendAnswer] = Future()
        self._calls.ask_from_thread(lambda call: SpendAsk(call, self._seq, kind, units), answer)
        return _left(answer.result())


def _value(answer: EffectAnswer) -> bytes | None:
    if answer.is_lost:
        raise asyncio.CancelledError("the attempt's lease is lost")
    return answer.value


def _left(answer: SpendAnswer) -> float | None:
    if answer.must_stop:
        raise asyncio.CancelledError("the job has spent more than it may, or the attempt's lease is lost")
    return answer.left
