"""Jobs as operators ask for them: over all tenants, by their id alone, with what was handed in."""

from collections.abc import Sequence
from typing import Any

from coatcheck.core import limits
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.states import Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.operating import Glimpse, JobFilter, JobSurvey, SurveyPage, TenantWork, choose
from coatcheck.store.records import Tombstone
from coatcheck.stores.postgres.audit import write_audit
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.reading import job_or_tombstone
from coatcheck.stores.postgres.rows import columns
from coatcheck.stores.postgres.transaction import Transaction

_NUL = "\0"


class Operating(Facet):
    """The engine's OperatingStore."""

    async def survey_jobs(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        wanted = survey.filter
        if _has_nul(wanted):
            return SurveyPage([], None)
        bounds = (min(survey.position or wanted.end_id, wanted.end_id), wanted.first_id)
        if wanted.tenant is not None and not wanted.is_dead_letter and wanted.status is not Status.RUNNING:
            return await self._survey_tenant(survey, wanted.tenant, bounds, now)
        statement = "survey_jobs"
        if wanted.is_dead_letter:
            statement = "survey_dead_letters"
        elif wanted.status is Status.RUNNING:
            statement = "survey_running"
        run = await self._glimpses(statement, *bounds, limits.JOBS_SURVEYED_MAX)
        return await self._page(*choose(survey, [run], limits.JOBS_SURVEYED_MAX, now), now)

    async def next_dead_letters(self, survey: JobSurvey, now: InstantMs) -> SurveyPage:
        wanted, look = survey.filter, limits.JOBS_SURVEYED_MAX
        if _has_nul(wanted):
            return SurveyPage([], None)
        bounds = (survey.position or "", wanted.first_id, wanted.end_id)
        run = await self._glimpses("next_dead_letters", *bounds, look)
        return await self._page(*choose(survey, [run], look, now, is_oldest_first=True), now)

    async def find_any_job(self, job_id: str, now: InstantMs) -> JobRecord | Tombstone | None:
        if _NUL in job_id:
            return None
        rows = await self._transactions.read("find_tenant_of", job_id)
        if not rows:
            return None
        row = await self._readers.find(rows[0][0], job_id, now)
        return None if row is None else job_or_tombstone(row, now)

    async def read_payload(self, tenant: str, job_id: str, entry: AuditEntry) -> bytes | None:
        async def act(transaction: Transaction) -> bytes | None:
            row = await transaction.row("read_payload", job_id, tenant, entry.at)
            if row is None:
                return None
            await write_audit(transaction, entry)
            payload: bytes = row[0]
            return payload

        return None if _NUL in job_id else await self._transactions.run(act)

    async def measure_tenant(self, tenant: str) -> TenantWork:
        return await self._transactions.run(lambda transaction: measure_tenant(transaction, tenant))

    async def _survey_tenant(
        self, survey: JobSurvey, tenant: str, bounds: tuple[str, str], now: InstantMs
    ) -> SurveyPage:
        wanted = survey.filter
        statuses = dict.fromkeys(status.value if status.is_final else "" for status in wanted.statuses)
        operations = [wanted.operation]
        if wanted.operation is None:
            operations = [row[0] for row in await self._transactions.read("list_operations", tenant)]
        named = [(operation, status) for operation in operations for status in statuses]
        look = max(survey.limit + 1, limits.JOBS_SURVEYED_MAX // max(1, len(named)))
        runs: list[list[Glimpse]] = [[] for _ in range(len(named) + 1)]
        asked = (tenant, *columns(named, 2), *bounds, look, "" in statuses, wanted.operation)
        for n, *row in await self._transactions.read("survey_tenant", *asked):
            runs[n].append(Glimpse._make(row))
        return await self._page(*choose(survey, runs, look, now), now)

    async def _glimpses(self, statement: str, *values: Any) -> Sequence[Glimpse]:
        return [Glimpse._make(row) for row in await self._transactions.read(statement, *values)]

    async def _page(self, chosen: Sequence[Glimpse], position: str | None, now: InstantMs) -> SurveyPage:
        """The jobs as they stand now, which may be a moment later than the glimpses."""
        if not chosen:
            return SurveyPage([], position)
        asked = columns([(job.id, job.tenant, now) for job in chosen], 3)
        rows = await self._transactions.read("find_jobs", *asked, limits.INLINE_RESULT_BYTES_MAX)
        found = (job_or_tombstone(row, now) for row in sorted(rows, key=lambda row: int(row[0])))
        return SurveyPage([job for job in found if isinstance(job, JobRecord)], position)


async def measure_tenant(transaction: Transaction, tenant: str) -> TenantWork:
    """How much there is of a tenant."""
    most = limits.TENANT_JOBS_COUNTED_MAX
    operations = [row[0] for row in await transaction.rows("list_operations", tenant)]
    ((unfinished, running, finished),) = await transaction.rows("measure_tenant", tenant, operations, most)
    return TenantWork(min(max(0, unfinished - running), most), min(running, most), min(finished, most))


def _has_nul(wanted: JobFilter) -> bool:
    """No name with a NUL is stored, nor could PostgreSQL be asked for it."""
    return _NUL in (wanted.tenant or "") or _NUL in (wanted.operation or "")
