"""What operators ask of jobs, whoever handed them in: lists over all tenants, a job by its id alone, its payload.

A list looks at a bounded number of jobs for each page, so that a filter that matches next to nothing costs no more
than one that matches all: a page may hold few jobs, or none, and still name where to go on.
"""

import heapq
from collections.abc import Sequence
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple, Protocol

from msgspec import Struct

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.ids import make_job_id
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import FINAL, Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.records import Tombstone

NEWER_THAN_ALL = "job_~"
OLDER_THAN_ALL = "job_"


class Glimpse(NamedTuple):
    """As much of a job as filters ask for."""

    id: str
    tenant: str
    operation: str
    status: str
    category: str | None
    finished_at: InstantMs | None
    expires_at: InstantMs | None


class JobFilter(Struct, frozen=True):
    """Which jobs are meant; what is None does not matter. Of two instants the first is included, the second is not.

    `is_dead_letter`: only dead letters, that is failed jobs that nobody has redriven yet.
    """

    tenant: str | None = None
    operation: str | None = None
    status: Status | None = None
    category: ErrorCategory | None = None
    is_dead_letter: bool = False
    created_since: InstantMs | None = None
    created_until: InstantMs | None = None
    finished_since: InstantMs | None = None
    finished_until: InstantMs | None = None

    @property
    def first_id(self) -> str:
        """No job that is meant has a smaller id: an id begins with the moment it was made."""
        return OLDER_THAN_ALL if self.created_since is None else make_job_id(self.created_since * 1000, 0)

    @property
    def end_id(self) -> str:
        """Every job that is meant has a smaller id."""
        return NEWER_THAN_ALL if self.created_until is None else make_job_id(self.created_until * 1000, 0)

    @property
    def statuses(self) -> Sequence[Status]:
        """The statuses a job that is meant can have."""
        if self.status is not None:
            return (self.status,)
        if self.is_dead_letter or self.category is not None:
            return (Status.FAILED,)
        is_any_end = self.finished_since is None and self.finished_until is None
        return tuple(status for status in Status if is_any_end or status in FINAL)

    def matches(self, job: Glimpse, now: InstantMs) -> bool:
        """Whether a job is meant. Its id, and whether it is a dead letter, was looked at before."""
        return (
            self.tenant in (None, job.tenant)
            and self.operation in (None, job.operation)
            and self.category in (None, job.category)
            and job.status in self.statuses
            and (job.expires_at is None or job.expires_at > now)
            and (self.finished_since is None or (job.finished_at or 0) >= self.finished_since)
            and (self.finished_until is None or (job.finished_at or 0) < self.finished_until)
        )


class JobSurvey(Struct, frozen=True):
    """One page of the jobs that are meant. `position` is where the page before ended."""

    filter: JobFilter
    limit: int
    position: str | None = None


class SurveyPage(Struct, frozen=True):
    """Jobs, and the position where to go on; None at the end."""

    jobs: Sequence[JobRecord]
    position: str | None


class TenantWork(Struct, frozen=True):
    """How many jobs of a tenant wait, run, and are kept after their end; each counted up to TENANT_JOBS_COUNTED_MAX."""

    queued: int
    running: int
    finished: int


class OperatingStore(Protocol):
    """For the operators' room. Any verb may raise StoreUnavailable."""

    async def survey_jobs(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        """Jobs of all tenants, newest first."""
        ...

    async def next_dead_letters(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        """Dead letters, oldest first."""
        ...

    async def find_any_job(self, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        """A job by its id alone, its tombstone once it expired, or None."""
        ...

    async def read_payload(self, tenant: str, job_id: str, entry: AuditEntry) -> bytes | None:
        """What was handed in with a job that is kept. That it was read is written first, in a commit of its own."""
        ...

    async def measure_tenant(self, tenant: str) -> TenantWork:
        """How much there is of a tenant now."""
        ...


def choose(
    survey: JobSurvey, runs: Sequence[Sequence[Glimpse]], look: int, now: InstantMs, is_oldest_first: bool = False
) -> tuple[list[Glimpse], str | None]:
    """The jobs of a page, and the position where to go on.

    Args:
        survey: what is asked for.
        runs: each of them in the order of the page, beginning at the page's own position.
        look: how many jobs of a run were looked at, at most; of one that has as many the rest is not known.
        now: the time of the read.
        is_oldest_first: the order.
    """
    ends = [run[-1].id for run in runs if len(run) >= look]
    known_to = (min(ends) if is_oldest_first else max(ends)) if ends else None

    def is_known(job: Glimpse) -> bool:
        return known_to is None or (job.id <= known_to if is_oldest_first else job.id >= known_to)

    chosen: list[Glimpse] = []
    for job in takewhile(is_known, heapq.merge(*runs, key=itemgetter(0), reverse=not is_oldest_first)):
        if survey.filter.matches(job, now):
            if len(chosen) == survey.limit:
                return chosen, chosen[-1].id
            chosen.append(job)
    return chosen, known_to
