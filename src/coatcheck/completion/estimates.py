"""When asking again is worth while, and when a job will start: from what the queues measurably do."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from coatcheck.admission.forecasts import Forecasts
from coatcheck.admission.measures import Measures
from coatcheck.core import limits
from coatcheck.core.forecast import MEASURE_AGE_S
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.store.clock import Clock
from coatcheck.store.queues import QueueStore
from coatcheck.store.records import QueueMeasure

_RUN_UNKNOWN_S = 1.0
_FRACTION_MIN = 0.02
_OVERDUE_SHARE = 0.1
_CANCEL_S = 3.0
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class RetryBounds:
    """The shortest and the longest advice in whole seconds."""

    min_s: int = limits.RETRY_AFTER_S_MIN
    max_s: int = limits.RETRY_AFTER_S_MAX


_DEFAULT_BOUNDS = RetryBounds()


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a job is likely to start, and by when it will have started in 19 of 20 cases."""

    likely: InstantMs
    bound: InstantMs


class Advice(NamedTuple):
    """What a client is told of an open job: after how many whole seconds to ask again, and the start, if known."""

    retry_after_s: int
    start: StartEstimate | None


class Estimates:
    """Advice on when to ask again, and on when a waiting job will start.

    Args:
        store: where places in the line are counted.
        measures: of all queues.
        forecasts: made of them.
        clock: of this process.
        bounds: of the advice.
        share: a random number in [0, 1).
    """

    def __init__(
        self,
        store: QueueStore,
        measures: Measures,
        forecasts: Forecasts,
        clock: Clock,
        bounds: RetryBounds = _DEFAULT_BOUNDS,
        share: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._measures = measures
        self._forecasts = forecasts
        self._clock = clock
        self._bounds = bounds
        self._share = share

    def advise(self, job: JobRecord, place: int | None = None) -> Advice:
        """When to ask for an open job again, clamped and spread by ±20 %, and when it will start.

        `place`: in the line of its tenant; it is guessed where it is not known.
        """
        self._measures.look()
        now = self._clock.now()
        start = self._start_of(job, place, now) if job.status is Status.QUEUED else None
        return Advice(self._advice_s(expected_wait_s(job, self._measures.of(job.operation), now)), start)

    def room_after_s(self, operation: str, jobs: float) -> int:
        """Whole seconds in which `jobs` more of an operation are likely to have started: advice as the other."""
        self._measures.look()
        measure = self._measures.of(operation)
        running = max(measure.running, 1) if measure is not None else 1
        return self._advice_s(jobs * _run_s(measure) / running)

    def _advice_s(self, wait_s: float) -> int:
        spread_s = wait_s * (1 - _JITTER + 2 * _JITTER * self._share())
        return max(self._bounds.min_s, round(min(self._bounds.max_s, spread_s)))

    async def place_of(self, job: JobRecord) -> int | None:
        """How many of its tenant's jobs go before a waiting one, where that matters and is not too many to count.

        Raises:
            StoreUnavailable: it could not be read.
        """
        if job.status is not Status.QUEUED or job.available_at > self._clock.now():
            return None
        self._measures.look()
        if self._forecasts.of(job.operation) is None:
            return None
        place = await self._store.count_ahead(job, limits.AHEAD_COUNTED_MAX)
        return None if place >= limits.AHEAD_COUNTED_MAX else place

    def _start_of(self, job: JobRecord, place: int | None, now: InstantMs) -> StartEstimate | None:
        forecast = self._forecasts.of(job.operation)
        if forecast is not None:
            if place is None:
                place = forecast.place_of(job, self._measures.since(job.operation, job.tenant))
            ahead = forecast.ahead(job.tenant, place)
            likely, bound = forecast.at(forecast.pace.wait_s(ahead)), forecast.at(forecast.pace.bound_s(ahead))
        elif job.available_at > now or self._forecasts.is_idle(job.operation):
            likely, bound = now, now + round(MEASURE_AGE_S * 1000)
        else:
            return None
        later = max(job.available_at, now)
        return StartEstimate(max(likely, later), max(bound, later))


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
