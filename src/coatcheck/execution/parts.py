"""What a worker is made of, and how it is set. Every duration is in seconds."""

from dataclasses import dataclass, field
from typing import Protocol

from coatcheck.admission.directory import Directory
from coatcheck.app import App
from coatcheck.core.backoff import Backoff
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.observe.logs import LogFormat
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import Clock
from coatcheck.store.contract import ClaimStore, WakeUpSource
from coatcheck.store.costs import CostStore


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker runs.

    runners: shared runner processes. concurrency: attempts at once in each of them. solo_runners: processes that
    take one job at a time, for `runs_in="process"` and for jobs that must run alone. solo_idle_s: how long one of
    those is kept without work. cancel_grace_s: the whole time from a stored request to cancel to its record.
    process_stop_s, attempt_stop_s: how long a handler in a process of its own, or any handler over its time, may
    take to stop once it was told to. import_timeout_s: how long importing the app may take.
    """

    runners: int = 1
    concurrency: int = 100
    solo_runners: int = 2
    solo_idle_s: float = 60.0
    lease_s: float = 15.0
    heartbeat_s: float = 3.0
    cancel_grace_s: float = 30.0
    process_stop_s: float = 2.0
    attempt_stop_s: float = 5.0
    poll_s: float = 1.0
    import_timeout_s: float = 120.0
    restart: Backoff = field(default_factory=lambda: Backoff(first_s=0.25, factor=2.0, max_s=30.0))
    log_format: LogFormat = "auto"
    log_level: str = "info"


class WorkerStore(ClaimStore, CostStore, WakeUpSource, Protocol):
    """What a worker needs of a store."""


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker is handed. `app_ref` ("module:attribute") is where runners find the app."""

    store: WorkerStore
    app: App
    app_ref: str
    settings: WorkerSettings
    metrics: Metrics
    clock: Clock
    directory: Directory
    fault_point: FaultPoint = no_fault
