"""When asking again is worth while: from what the queues measurably do, never from the request's own read."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from coatcheck.core import limits
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.observe.logs import get_logger
from coatcheck.store.clock import Clock
from coatcheck.store.contract import ReadingStore
from coatcheck.store.errors import StoreError
from coatcheck.store.records import QueueMeasure

_FRESH_S = 1.0
_RUN_UNKNOWN_S = 1.0
_FRACTION_MIN = 0.02
_OVERDUE_SHARE = 0.1
_CANCEL_S = 3.0
_JITTER = 0.2

_log = get_logger("completion.estimates")


@dataclass(frozen=True, slots=True)
class RetryBounds:
    """The shortest and the longest advice in whole seconds."""

    min_s: int = limits.RETRY_AFTER_S_MIN
    max_s: int = limits.RETRY_AFTER_S_MAX


_DEFAULT_BOUNDS = RetryBounds()


class Estimates:
    """Keeps a measure of the queues at most about a second old, read in the background while anybody asks."""

    def __init__(
        self,
        store: ReadingStore,
        clock: Clock,
        bounds: RetryBounds = _DEFAULT_BOUNDS,
        share: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._clock = clock
        self._bounds = bounds
        self._share = share
        self._measures: Mapping[str, QueueMeasure] = {}
        self._measured_s = float("-inf")
        self._refresh: asyncio.Task[None] | None = None

    def retry_after_s(self, job: JobRecord, now: InstantMs) -> int:
        """Whole seconds after which a client should ask for this job again: clamped, spread by ±20 %."""
        self._refresh_if_stale()
        return self._advice_s(expected_wait_s(job, self._measures.get(job.operation), now))

    def room_after_s(self, operation: str, jobs: float) -> int:
        """Whole seconds in which `jobs` more of an operation are likely to have started: advice as the other."""
        self._refresh_if_stale()
        measure = self._measures.get(operation)
        running = max(measure.running, 1) if measure is not None else 1
        return self._advice_s(jobs * _run_s(measure) / running)

    def _advice_s(self, wait_s: float) -> int:
        spread_s = wait_s * (1 - _JITTER + 2 * _JITTER * self._share())
        return max(self._bounds.min_s, round(min(self._bounds.max_s, spread_s)))

    async def close(self) -> None:
        """Stop reading in the background."""
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)

    def _refresh_if_stale(self) -> None:
        is_fresh = self._clock.monotonic_s() - self._measured_s < _FRESH_S
        is_reading = self._refresh is not None and not self._refresh.done()
        if not is_fresh and not is_reading:
            self._measured_s = self._clock.monotonic_s()
            self._refresh = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        try:
            measures = await self._store.measure_queues(self._clock.now())
        except StoreError as error:
            _log.debug("queues_not_measured", reason=type(error).__name__)
            return
        self._measures = {measure.operation: measure for measure in measures}


def expected_wait_s(job: JobRecord, measure: QueueMeasure | None, now: InstantMs) -> float:
    """Seconds until the job is likely to have got further; `measure` is that of its operation, if there is one."""
    run_s = _run_s(measure)
    if job.status is not Status.QUEUED:
        return min(_running_s(job, run_s, now), _CANCEL_S) if job.cancel_requested else _running_s(job, run_s, now)
    if job.available_at > now:
        return (job.available_at - now) / 1000
    if measure is None:
        return run_s
    return measure.ready * run_s / max(measure.running, 1) + run_s


def _run_s(measure: QueueMeasure | None) -> float:
    return _RUN_UNKNOWN_S if measure is None or measure.recent_run_s is None else measure.recent_run_s


def _running_s(job: JobRecord, run_s: float, now: InstantMs) -> float:
    started_at = job.updated_at if job.started_at is None else job.started_at
    elapsed_s = max(now - started_at, 0) / 1000
    fraction = None if job.progress is None else job.progress.fraction
    if fraction is not None and fraction >= _FRACTION_MIN:
        return elapsed_s * (1 - fraction) / fraction
    if elapsed_s < run_s:
        return run_s - elapsed_s
    # Over the usual time: nobody knows, so ask less often the longer it takes.
    return max(1.0, elapsed_s * _OVERDUE_SHARE)
