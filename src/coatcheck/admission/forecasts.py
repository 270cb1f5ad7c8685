"""When a job will start, as far as it can be known: from a queue that was seen busy for a while and runs that ended.

A queue that was not busy has shown no bound to what it can do, and so has one that nobody looked at for a while. Then
nothing is said, and nothing refused.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from coatcheck.admission.measures import STALE_S, Measures
from coatcheck.core.forecast import Lines, Pace
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.store.clock import Clock
from coatcheck.store.records import QueueMeasure, TenantQueue

RUNS_MIN: Final = 20
BUSY_MEASURES_MIN: Final = 3
_BUSY_MEASURES_KEPT: Final = 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of a busy queue at one moment."""

    measured_at: InstantMs
    pace: Pace
    lines: Lines
    queues: Mapping[str, TenantQueue]

    def own_ahead(self, tenant: str, priority: int, since: int) -> int:
        """The tenant's jobs that surely go before a new one of this priority. `since`: let in after the measure.

        Those of worse priority do not, and how many are of which is not known: then none is counted.
        """
        queue = self.queues.get(tenant)
        if queue is None:
            return since
        return queue.ready + since if priority >= queue.last_priority else 0

    def place_of(self, job: JobRecord, since: int) -> int:
        """About how many of its tenant's jobs go before a waiting one, by its time between the ends of the line."""
        queue = self.queues.get(job.tenant)
        if queue is None or job.created_at > queue.last_created_at:
            # It came after the measure, and is counted with those since.
            return max(since - 1, 0) + (0 if queue is None else queue.ready)
        span = queue.last_created_at - queue.first_created_at
        if span <= 0:
            return queue.ready - 1
        share = (job.created_at - queue.first_created_at) / span
        return round(min(max(share, 0.0), 1.0) * (queue.ready - 1))

    def ahead(self, tenant: str, own: float) -> float:
        """All jobs that go before one with `own` of its tenant's before it."""
        return self.lines.ahead(tenant, own)

    def at(self, wait_s: float) -> InstantMs:
        """The instant that comes this long after the measure."""
        return self.measured_at + round(wait_s * 1000)


class Forecasts:
    """Learns from each measure of the queues, and says what is known as of the last look at them.

    Args:
        measures: of all queues.
        clock: of this process.
        weight: of a tenant, its share of the turns.
    """

    def __init__(self, measures: Measures, clock: Clock, weight: Callable[[str], float]) -> None:
        self._measures = measures
        self._clock = clock
        self._weight = weight
        self._learned_s = float("-inf")
        self._busy: dict[str, deque[int]] = {}
        self._forecasts: dict[str, Forecast] = {}
        measures.on_measured(self._learn)

    def of(self, operation: str) -> Forecast | None:
        """What is known of an operation's queue, if it is busy and that is known well enough."""
        return self._forecasts.get(operation) if self._measures.is_known else None

    def is_idle(self, operation: str) -> bool:
        """Whether the next job of an operation is likely to start at once: nobody waited and few came since."""
        measure = self._measures.of(operation)
        if measure is None or measure.runs < RUNS_MIN or measure.ready or not self._measures.is_known:
            return False
        return self._measures.since(operation) <= max(measure.running, 1)

    def _learn(self, queues: Mapping[str, QueueMeasure]) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._learned_s > STALE_S + 2 * self._measures.age_s:
            # What happened in between is not known: it may have been idle.
            self._busy.clear()
        self._learned_s = now_s
        measured_at = self._clock.now() - round(self._measures.age_s * 1000)
        self._forecasts = {}
        for operation in self._busy.keys() - queues.keys():
            del self._busy[operation]
        for operation, measure in queues.items():
            forecast = self._forecast(measure, measured_at)
            if forecast is not None:
                self._forecasts[operation] = forecast

    def _forecast(self, measure: QueueMeasure, measured_at: InstantMs) -> Forecast | None:
        if not (measure.ready and measure.running):
            self._busy.pop(measure.operation, None)
            return None
        busy = self._busy.setdefault(measure.operation, deque(maxlen=_BUSY_MEASURES_KEPT))
        busy.append(measure.running)
        if len(busy) < BUSY_MEASURES_MIN or measure.runs < RUNS_MIN or measure.recent_run_s is None:
            return None
        lines = Lines({queue.tenant: queue.ready for queue in measure.tenants}, self._weight)
        pace = Pace(fmean(busy), measure.recent_run_s, measure.run_spread_s, measure.runs)
        return Forecast(measured_at, pace, lines, {queue.tenant: queue for queue in measure.tenants})
