"""What the reference model remembers: dictionaries of jobs, keys, tombstones, effects and turns, nothing else.

The model predicts what a store answers. It is no store: it keeps nothing, shares nothing and checks no lease by itself
beyond comparing what its caller shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from coatcheck.core.events import EventType
from coatcheck.core.job import AttemptRecord, InstantMs, JobRecord
from coatcheck.core.outcome import ResultBody
from coatcheck.core.policy import Policy
from coatcheck.store.records import IdempotencyKey, Lease, Tombstone
from coatcheck.testing.model_costs import ModelCosts


class Place(StrEnum):
    """Where a job stands: waiting for its time, ready, with a worker, or at its end."""

    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True)
class ModelJob:
    """One job. `alive_s` is the monotonic second of the last sign of life under its lease, `beats` their number."""

    record: JobRecord
    place: Place
    payload: bytes
    key_expires_at: InstantMs | None = None
    crashes: int = 0
    is_alone: bool = False
    lease: Lease | None = None
    beats: int = 0
    alive_s: float = 0.0
    attempt_started_at: InstantMs = 0
    attempts: list[AttemptRecord] = field(default_factory=list)
    result: ResultBody | None = None
    tombstone_until: InstantMs = 0

    @property
    def line(self) -> tuple[str, str]:
        """The queue it waits in."""
        return self.record.operation, self.record.tenant


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A key with the job it stands for."""

    key: IdempotencyKey
    job_id: str


@dataclass(frozen=True, slots=True)
class ModelTombstone:
    """What is left of a job, whose it was and how long it is kept."""

    tombstone: Tombstone
    tenant: str
    kept_until: InstantMs


@dataclass(frozen=True, slots=True)
class Told:
    """An event that must stand in the outbox: its type, the job at that moment and the data that tell of it."""

    type: EventType
    job: JobRecord
    data: bytes


class Turns:
    """Whose turn it is in one operation: the lowest level is served next, among equals the lesser name.

    Being served raises a tenant by its cost. A newcomer starts level with the lowest that waits; one that comes back
    starts no lower than it left, as long as anybody has been waiting since.

    Args:
        costs: of tenants whose weight is not 1.
    """

    def __init__(self, costs: Mapping[str, float]) -> None:
        self._costs = costs
        self._levels: dict[str, float] = {}
        self._waiting: dict[str, int] = {}

    def join(self, tenant: str) -> None:
        """One more job of the tenant is ready."""
        if tenant not in self._waiting:
            lowest = min((self._levels[waiting] for waiting in self._waiting), default=0.0)
            self._levels[tenant] = max(self._levels.get(tenant, lowest), lowest)
        self._waiting[tenant] = self._waiting.get(tenant, 0) + 1

    def next(self) -> str | None:
        """The tenant whose turn it is."""
        return min(self._waiting, key=lambda tenant: (self._levels[tenant], tenant), default=None)

    def serve(self, tenant: str) -> None:
        """The tenant's first job was taken in its turn."""
        self._levels[tenant] += self._costs.get(tenant, 1.0)
        self.leave(tenant)

    def leave(self, tenant: str) -> None:
        """One job of the tenant is ready no more."""
        self._waiting[tenant] -= 1
        if not self._waiting[tenant]:
            del self._waiting[tenant]
        if not self._waiting:
            self._levels.clear()

    def copy(self) -> "Turns":
        """The same turns, to look ahead in."""
        ahead = Turns(self._costs)
        ahead._levels, ahead._waiting = dict(self._levels), dict(self._waiting)
        return ahead


@dataclass(slots=True)
class ModelState:
    """Everything a store should know."""

    policies: dict[str, Policy]
    turn_costs: Mapping[str, float] = field(default_factory=dict)
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    keys: dict[tuple[str, str, str], ModelKey] = field(default_factory=dict)
    tombstones: dict[str, ModelTombstone] = field(default_factory=dict)
    effects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    turns: dict[str, Turns] = field(default_factory=dict)
    outbox: list[Told] = field(default_factory=list)
    costs: ModelCosts = field(default_factory=ModelCosts)

    def turns_of(self, operation: str) -> Turns:
        return self.turns.setdefault(operation, Turns(self.turn_costs))

    def in_place(self, place: Place, operation: str | None = None) -> list[ModelJob]:
        """The jobs in one place, by id."""
        found = [job for job in self.jobs.values() if job.place is place]
        wanted = [job for job in found if operation in (None, job.record.operation)]
        return sorted(wanted, key=lambda job: job.record.id)

    def holder(self, lease: Lease) -> ModelJob | None:
        """The job under this lease, or None where the lease is lost."""
        job = self.jobs.get(lease.job_id)
        return job if job is not None and job.place is Place.RUNNING and job.lease == lease else None
