"""Metrics: one table of names, units and labels, and the counters behind them.

A metric `x` is called `coatcheck_x` by Prometheus, counters with `_total` behind it. Every duration is in seconds.
Each Metrics has a registry of its own, so that an app that mounts Coatcheck keeps its own metrics.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric


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
    _gauge("ready_jobs", "jobs", ("operation",), "Queued jobs that could start now."),
    _gauge("scheduled_jobs", "jobs", ("operation",), "Queued jobs that wait for their time."),
    _gauge("running_jobs", "jobs", ("operation",), "Jobs that run."),
    _gauge("oldest_ready_age_seconds", "seconds", ("operation",), "How long the oldest ready job has waited."),
    _histogram("start_delay_seconds", "seconds", ("operation",), "From when a job may start to its first start.", _SLOW),
    _histogram("completion_seconds", "seconds", ("operation", "status"), "From acceptance to the final status.", _SLOW),
    _histogram("attempt_seconds", "seconds", ("operation", "outcome"), "How long attempts ran.", _SLOW),
    _counter("attempts", "attempts", ("operation", "outcome"), "Attempts that ended."),
    _counter("finished", "jobs", ("operation", "status"), "Jobs that reached a final status under a worker."),
    _counter("retries", "attempts", ("operation",), "Attempts that will be followed by another after a backoff."),
    _counter("dead_letters", "jobs", ("operation", "category"), "Jobs kept as dead letters, by error category."),
    _counter("rescued", "attempts", (), "Attempts taken back because their lease ran out."),
    _counter("expired", "jobs", (), "Waiting jobs ended because their deadline or queue limit passed."),
    _counter("pruned", "rows", ("what",), "What retention removed: results, jobs, tombstones or keys."),
    _counter("leases_lost", "attempts", ("operation",), "Attempts whose worker found its lease gone."),
    _counter("runner_restarts", "processes", (), "Runner processes started again after they ended unasked."),
    _counter("loop_blocked", "occurrences", ("operation",), "Times a handler blocked its runner's event loop."),
    _counter("outbox_relayed", "events", (), "Events handed to their channel."),
    _counter("outbox_failures", "tries", (), "Tries to hand an event to its channel that failed."),
    _gauge("outbox_stuck", "events", (), "Events the relay steps over, because their channel keeps refusing them."),
    _counter("http_requests", "requests", ("route", "method", "status"), "Requests answered."),
    _gauge("http_connections", "connections", (), "Connections held open by clients."),
    _histogram("commit_batch_size", "writes", (), "Writes gathered in one commit of the store.", _BATCH),
    _histogram("commit_seconds", "seconds", (), "How long commits of the store took.", _FAST),
)

_BY_NAME = {row.name: row for row in METRICS}
_Family: TypeAlias = Counter | Gauge | Histogram
_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)


class _Registry(CollectorRegistry):
    """A registry that leaves out the creation times the client library adds to every child."""

    def collect(self) -> Iterable[Metric]:
        for family in super().collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class Metrics:
    """Counts, sets and observes by short name. The children of each metric are looked up once for each label set."""

    def __init__(self) -> None:
        self._registry = _Registry()
        self._families = {row.name: _family(row, self._registry) for row in METRICS}
        self._counters: dict[object, Counter] = {}
        self._gauges: dict[object, Gauge] = {}
        self._histograms: dict[object, Histogram] = {}

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Raise a counter."""
        key = (name, *labels.items())
        child = self._counters.get(key)
        if child is None:
            child = self._counters[key] = _child(self._families[name], Counter, name, labels)
        child.inc(amount)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Add an observation (a duration in seconds, a size in the metric's unit) to a histogram."""
        key = (name, *labels.items())
        child = self._histograms.get(key)
        if child is None:
            child = self._histograms[key] = _child(self._families[name], Histogram, name, labels)
        child.observe(value)

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Let a gauge stand at a value."""
        key = (name, *labels.items())
        child = self._gauges.get(key)
        if child is None:
            child = self._gauges[key] = _child(self._families[name], Gauge, name, labels)
        child.set(value)

    def read(self, name: str, /, **labels: str) -> float:
        """The value of a counter or gauge, the count of a histogram; 0 where nothing was counted. For tests."""
        row = _BY_NAME[name]
        sample = row.prometheus_name + ("_count" if row.kind is MetricKind.HISTOGRAM else "")
        return self._registry.get_sample_value(sample, labels) or 0.0

    def render(self) -> tuple[bytes, str]:
        """What a scrape is answered with, and its content type (the Prometheus text format 0.0.4)."""
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4


def _family(row: MetricRow, registry: CollectorRegistry) -> _Family:
    full_name = f"coatcheck_{row.name}"
    match row.kind:
        case MetricKind.COUNTER:
            return Counter(full_name, row.help, row.labels, registry=registry)
        case MetricKind.GAUGE:
            return Gauge(full_name, row.help, row.labels, registry=registry)
        case MetricKind.HISTOGRAM:
            return Histogram(full_name, row.help, row.labels, registry=registry, buckets=row.buckets)


def _child(family: _Family, kind: type[_Kind], name: str, labels: dict[str, str]) -> _Kind:
    if not isinstance(family, kind):
        raise TypeError(f"metric {name} is no {kind.__name__.lower()}")
    return family.labels(**labels) if labels else family
