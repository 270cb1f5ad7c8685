"""Jobs as operators ask for them: over all tenants, by their id alone, with what was handed in."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import FINAL, Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.operating import Glimpse, JobSurvey, SurveyPage, TenantWork, choose
from coatcheck.store.records import Tombstone
from coatcheck.stores.sqlite.audit import write_audit
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.readers import Snapshot
from coatcheck.stores.sqlite.reading import find
from coatcheck.stores.sqlite.transaction import Transaction


class Operating(Facet):
    """The engine's OperatingStore."""

    async def survey_jobs(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        return await self._readers.aside(lambda snapshot: _survey(snapshot, survey, now))

    async def next_dead_letters(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        return await self._readers.aside(lambda snapshot: _next_dead_letters(snapshot, survey, now))

    async def find_any_job(self, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        def read(snapshot: Snapshot) -> JobRecord | Tombstone | None:
            row = snapshot.row("find_tenant_of", job_id=job_id)
            return None if row is None else find(snapshot, row[0], job_id, now)

        return self._readers.here(read)

    async def read_payload(self, tenant: str, job_id: str, entry: AuditEntry) -> bytes | None:
        def act(transaction: Transaction) -> bytes | None:
            row = transaction.row("read_payload", tenant=tenant, job_id=job_id, now=entry.at)
            if row is None:
                return None
            write_audit(transaction, entry)
            payload: bytes = row[0]
            return payload

        return await self._writer.run(act)

    async def measure_tenant(self, tenant: str) -> TenantWork:
        return await self._readers.aside(lambda snapshot: measure_tenant(snapshot, tenant))


def measure_tenant(snapshot: Snapshot | Transaction, tenant: str) -> TenantWork:
    """How much there is of a tenant."""
    most = limits.TENANT_JOBS_COUNTED_MAX
    counts: dict[str | None, int] = {}
    for (operation,) in snapshot.rows("list_operations", tenant=tenant):
        for status in (None, *(status.value for status in FINAL)):
            values = {"tenant": tenant, "operation": operation, "status": status, "most": most}
            counts[status] = counts.get(status, 0) + snapshot.rows("count_jobs", **values)[0][0]
    running: int = snapshot.rows("count_running_of", tenant=tenant)[0][0]
    waiting = max(0, counts.pop(None, 0) - running)
    return TenantWork(min(waiting, most), min(running, most), min(sum(counts.values()), most))


def _survey(snapshot: Snapshot, survey: JobSurvey, now: InstantMs) -> SurveyPage:
    wanted = survey.filter
    bounds = {"before": min(survey.position or wanted.end_id, wanted.end_id), "first": wanted.first_id}
    look = limits.JOBS_SURVEYED_MAX
    if wanted.is_dead_letter:
        runs = [_glimpses(snapshot, "survey_dead_letters", look=look, **bounds)]
    elif wanted.status is Status.RUNNING:
        runs = [_glimpses(snapshot, "survey_running", look=look, **bounds)]
    elif wanted.tenant is not None:
        statuses = dict.fromkeys(status.value if status.is_final else None for status in wanted.statuses)
        named = [
            (operation, status)
            for operation in _operations(snapshot, wanted.tenant, wanted.operation)
            for status in statuses
        ]
        look = max(survey.limit + 1, look // max(1, len(named)))
        runs = [
            _glimpses(
                snapshot, "survey_tenant", tenant=wanted.tenant, operation=operation, status=status, look=look, **bounds
            )
            for operation, status in named
        ]
    else:
        runs = [_glimpses(snapshot, "survey_jobs", look=look, **bounds)]
    return _page(snapshot, *choose(survey, runs, look, now), now)


def _next_dead_letters(snapshot: Snapshot, survey: JobSurvey, now: InstantMs) -> SurveyPage:
    wanted, look = survey.filter, limits.JOBS_SURVEYED_MAX
    run = _glimpses(
        snapshot,
        "next_dead_letters",
        after=survey.position or "",
        first=wanted.first_id,
        before=wanted.end_id,
        look=look,
    )
    return _page(snapshot, *choose(survey, [run], look, now, is_oldest_first=True), now)


def _operations(snapshot: Snapshot, tenant: str, operation: str | None) -> Sequence[str]:
    if operation is not None:
        return (operation,)
    return [row[0] for row in snapshot.rows("list_operations", tenant=tenant)]


def _glimpses(snapshot: Snapshot, statement: str, **values: object) -> Sequence[Glimpse]:
    return [Glimpse._make(row) for row in snapshot.rows(statement, **values)]


def _page(snapshot: Snapshot, chosen: Sequence[Glimpse], position: str | None, now: InstantMs) -> SurveyPage:
    found = (find(snapshot, job.tenant, job.id, now) for job in chosen)
    return SurveyPage([job for job in found if isinstance(job, JobRecord)], position)
