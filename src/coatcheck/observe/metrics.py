"""Metrics: one table of names, units and labels, and the counters behind them.

A metric `x` is called `coatcheck_x` by Prometheus, counters with `_total` behind it. Every duration is in seconds.
Each Metrics has a registry of its own, so that an app that mounts Coatcheck keeps its own metrics. Counting takes no
lock: each series is raised by one thread only, and a scrape reads whatever stands there.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TypeAlias, TypeVar, assert_never

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class MetricKind(StrEnum):
    """What a metric does: only rise, stand at a value, or gather observations in buckets."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric: `name` is its short name, `prometheus_name` what a scrape shows."""

    name: str
    kind: MetricKind
    unit: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def prometheus_name(self) -> str:
        suffix = "_total" if self.kind is MetricKind.COUNTER else ""
        return f"coatcheck_{self.name}{suffix}"


_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_SLOW = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_BATCH = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def _counter(name: str, unit: str, labels: tuple[str, ...], text: str) -> MetricRow:
    return MetricRow(name, MetricKind.COUNTER, unit, labels, text)


def _gauge(name: str, unit: str, labels: tuple[str, ...], text: str) -> MetricRow:
    return MetricRow(name, MetricKind.GAUGE, unit, labels, text)


def _histogram(name: str, unit: str, labels: tuple[str, ...], text: str, buckets: tuple[float, ...]) -> MetricRow:
    return MetricRow(name, MetricKind.HISTOGRAM, unit, labels, text, buckets)


METRICS: tuple[MetricRow, ...] = (
    _counter("accepted", "jobs", ("operation",), "Jobs accepted, that is durable and answered with 202."),
    _counter("refused", "requests", ("operation", "code"), "Submissions refused before acceptance, by problem code."),
    _histogram("acceptance_seconds", "seconds", ("operation",), "From a submission's headers to its answer.", _FAST),
    _counter("replayed", "requests", ("operation",), "Submissions answered with the job their key stands for."),
    _counter("key_conflicts", "requests", ("operation",), "Submissions whose key was used for another body."),
    _counter("status_reads", "requests", ("operation", "answer"), "Reads of a job: 200, 304, 410, stream or wait."),
    _counter("reads_refused", "requests", ("route",), "Reads of jobs refused because they came too fast."),
    _gauge("shared_limits_away", "yes or no", (), "1 while limits_store is away and this process counts for itself."),
    _counter("limits_decided_locally", "requests", (), "Rates decided without limits_store while it was away."),
    _counter(
        "estimated_starts",
        "jobs",
        ("operation", "held"),
        "Jobs looked up afterwards, by whether they started within the 95 % bound.",
    ),
    _gauge("ready_jobs", "jobs", ("operation",), "Queued jobs that could start now."),
    _gauge("scheduled_jobs", "jobs", ("operation",), "Queued jobs that wait for their time."),
    _gauge("running_jobs", "jobs", ("operation",), "Jobs that run."),
    _gauge("oldest_ready_age_seconds", "seconds", ("operation",), "How long the oldest ready job has waited."),
    _histogram(
        "start_delay_seconds", "seconds", ("operation",), "From when a job may start to its first start.", _SLOW
    ),
    _histogram("completion_seconds", "seconds", ("operation", "status"), "From acceptance to the final status.", _SLOW),
    _histogram("attempt_seconds", "seconds", ("operation", "outcome"), "How long attempts ran.", _SLOW),
    _counter("attempts", "attempts", ("operation", "outcome"), "Attempts that ended."),
    _counter("finished", "jobs", ("operation", "status"), "Jobs that reached a final status under a worker."),
    _counter("cost_accepted", "units", ("operation", "kind"), "What accepted jobs were charged, by kind."),
    _counter("cost_completed", "units", ("operation", "kind"), "What succeeded jobs cost: charged and spent, by kind."),
    _counter("spent", "units", ("operation", "kind"), "Units that jobs spent as they ran, by kind."),
    _counter("retries", "attempts", ("operation",), "Attempts that will be followed by another after a backoff."),
    _counter("dead_letters", "jobs", ("operation", "category"), "Jobs kept as dead letters, by error category."),
    _counter("rescued", "attempts", (), "Attempts taken back because their lease ran out."),
    _counter("expired", "jobs", (), "Waiting jobs ended because their deadline or queue limit passed."),
    _counter(
        "revoked_jobs", "jobs", ("what",), "Jobs of revoked tenants that were cancelled, asked to end, or erased."
    ),
    _gauge("revocations_under_way", "tenants", (), "Revoked tenants whose revocation is not done yet, up to 100."),
    _gauge(
        "revocation_jobs_left",
        "jobs",
        ("what",),
        "Jobs of those tenants that have to end yet, or are finished and to be erased, up to 100,000.",
    ),
    _gauge(
        "inbox_jobs", "jobs", (), "Jobs handed in within a caller's transaction that wait in the inbox, up to 100,000."
    ),
    _gauge("inbox_oldest_age_seconds", "seconds", (), "How long ago the oldest job in the inbox was handed in."),
    _counter("inbox_promoted", "jobs", (), "Jobs handed in within a caller's transaction and moved into the queue."),
    _counter(
        "pruned",
        "rows",
        ("what",),
        "What retention removed: results, jobs, tombstones, keys, spending, api-keys or audit.",
    ),
    _counter("leases_lost", "attempts", ("operation",), "Attempts whose worker found its lease gone."),
    _counter("runner_restarts", "processes", (), "Runner processes started again after they ended unasked."),
    _counter("loop_blocked", "occurrences", ("operation",), "Times a handler blocked its runner's event loop."),
    _counter("outbox_relayed", "events", (), "Events handed to their channel."),
    _counter("outbox_failures", "tries", (), "Tries to hand an event to its channel that failed."),
    _gauge("outbox_stuck", "events", (), "Events the relay steps over, because their channel keeps refusing them."),
    _counter("http_requests", "requests", ("route", "method", "status"), "Requests answered."),
    _counter("unauthenticated", "requests", ("reason",), "Requests refused because their credential was not good."),
    _gauge("http_connections", "connections", (), "Connections held open by clients."),
    _histogram("commit_batch_size", "writes", (), "Writes gathered in one commit of the store.", _BATCH),
    _histogram("commit_seconds", "seconds", (), "How long commits of the store took.", _FAST),
)

_BY_NAME = {row.name: row for row in METRICS}


class Counter:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        """Raise it."""
        self.value += amount


class Gauge:
    """One series of a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Histogram:
    """One series of a histogram. `counts` has a place for each bucket, and one for what is larger than all."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Add an observation (a duration in seconds, a size in the metric's unit)."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """The bound of each bucket as Prometheus writes it, and how many observations were at most that."""
        bounds = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))


_Series: TypeAlias = Counter | Gauge | Histogram
_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)
_LabelValues: TypeAlias = tuple[str, ...]


class Metrics:
    """Counts, sets and observes by short name. Hot paths keep the series they raise, and look it up no more."""

    def __init__(self) -> None:
        self._families: dict[str, dict[_LabelValues, _Series]] = {row.name: {} for row in METRICS}
        self._found: dict[object, _Series] = {}
        self._registry = CollectorRegistry()
        self._registry.register(_Exposition(self._families))
        for row in METRICS:
            if not row.labels:
                self._series(row.name, {})

    def counter(self, name: str, /, **labels: str) -> Counter:
        """One series of a counter, to be kept."""
        return _as_kind(self._series(name, labels), Counter, name)

    def histogram(self, name: str, /, **labels: str) -> Histogram:
        """One series of a histogram, to be kept."""
        return _as_kind(self._series(name, labels), Histogram, name)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Raise a counter."""
        _as_kind(self._series(name, labels), Counter, name).value += amount

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Add an observation (a duration in seconds, a size in the metric's unit) to a histogram."""
        _as_kind(self._series(name, labels), Histogram, name).observe(value)

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Let a gauge stand at a value."""
        _as_kind(self._series(name, labels), Gauge, name).value = float(value)

    def read(self, name: str, /, **labels: str) -> float:
        """The value of a counter or gauge, the count of a histogram; 0 where nothing was counted. For tests."""
        row = _BY_NAME[name]
        sample = row.prometheus_name + ("_count" if row.kind is MetricKind.HISTOGRAM else "")
        return self._registry.get_sample_value(sample, labels) or 0.0

    def render(self) -> tuple[bytes, str]:
        """What a scrape is answered with, and its content type (the Prometheus text format 0.0.4)."""
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def _series(self, name: str, labels: Mapping[str, str]) -> _Series:
        key = (name, *labels.items())
        series = self._found.get(key)
        if series is None:
            series = self._found[key] = self._add_series(_BY_NAME[name], labels)
        return series

    def _add_series(self, row: MetricRow, labels: Mapping[str, str]) -> _Series:
        if labels.keys() != set(row.labels):
            raise ValueError(f"metric {row.name} has the labels {row.labels}, not {tuple(labels)}")
        values = tuple(str(labels[name]) for name in row.labels)
        return self._families[row.name].setdefault(values, _new_series(row))


class _Exposition(Collector):
    """What has been counted, in the form the client library writes out."""

    def __init__(self, families: Mapping[str, Mapping[_LabelValues, _Series]]) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        """Nothing to say beforehand: no other collector shares the registry."""
        return ()

    def collect(self) -> Iterator[Metric]:
        for row in METRICS:
            yield _family(row, self._families[row.name])


def _family(row: MetricRow, series: Mapping[_LabelValues, _Series]) -> Metric:
    name = f"coatcheck_{row.name}"
    if row.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, row.help, labels=row.labels)
        for labels, one in list(series.items()):
            if isinstance(one, Histogram):
                histogram.add_metric(labels, one.buckets(), one.sum)
        return histogram
    is_counter = row.kind is MetricKind.COUNTER
    family = (CounterMetricFamily if is_counter else GaugeMetricFamily)(name, row.help, labels=row.labels)
    for labels, one in list(series.items()):
        if not isinstance(one, Histogram):
            family.add_metric(labels, one.value)
    return family


def _new_series(row: MetricRow) -> _Series:
    match row.kind:
        case MetricKind.COUNTER:
            return Counter()
        case MetricKind.GAUGE:
            return Gauge()
        case MetricKind.HISTOGRAM:
            return Histogram(row.buckets)
        case _:
            assert_never(row.kind)


def _as_kind(series: _Series, kind: type[_Kind], name: str) -> _Kind:
    if not isinstance(series, kind):
        raise TypeError(f"metric {name} is no {kind.__name__.lower()}")
    return series
