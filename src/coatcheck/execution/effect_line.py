"""How a job in a runner reaches control: progress gathered on the way, effects asked for and answered."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future

from coatcheck.core.job import Progress
from coatcheck.execution.frames import EffectAnswer, EffectAsk, ProgressMade, ToControl
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


class EffectCalls:
    """Asks for effects and hands each answer to who asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[ToControl], None]) -> None:
        self._loop = loop
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[EffectAnswer]] = {}

    def ask(self, seq: int, name: str, value: bytes | None) -> Future[EffectAnswer]:
        """Ask from the loop's thread."""
        return self._ask(EffectAsk(next(self._numbers), seq, name, value), Future())

    def ask_from_thread(self, seq: int, name: str, value: bytes | None) -> Future[EffectAnswer]:
        """Ask from any other thread."""
        answer: Future[EffectAnswer] = Future()
        self._loop.call_soon_threadsafe(self._ask, EffectAsk(next(self._numbers), seq, name, value), answer)
        return answer

    def answered(self, answer: EffectAnswer) -> None:
        """Hand an answer over."""
        waiting = self._waiting.pop(answer.call, None)
        if waiting is not None and waiting.set_running_or_notify_cancel():
            waiting.set_result(answer)

    def _ask(self, ask: EffectAsk, answer: "Future[EffectAnswer]") -> "Future[EffectAnswer]":
        self._waiting[ask.call] = answer
        self._send(ask)
        return answer


class AttemptLine:
    """The line of one attempt; `is_stopped` once it was told to stop.

    Losing the lease stops it, and is raised as the cancellation it is.
    """

    def __init__(self, seq: int, clock: Clock, progress: ProgressGatherer, effects: EffectCalls) -> None:
        self.clock = clock
        self.is_stopped = False
        self._seq = seq
        self._progress = progress
        self._effects = effects

    def report_progress(self, progress: Progress) -> None:
        self._progress.report(self._seq, progress)

    async def ask_effect(self, name: str, value: bytes | None) -> bytes | None:
        return _value(await asyncio.wrap_future(self._effects.ask(self._seq, name, value)))

    def call_effect(self, name: str, value: bytes | None) -> bytes | None:
        return _value(self._effects.ask_from_thread(self._seq, name, value).result())


def _value(answer: EffectAnswer) -> bytes | None:
    if answer.is_lost:
        raise asyncio.CancelledError("the attempt's lease is lost")
    return answer.value
