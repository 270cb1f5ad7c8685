"""Jobs of all tenants, for an operator: look at them, cancel them."""

from collections.abc import Sequence

from msgspec import Struct

from coatcheck.core.job import AttemptRecord, JobRecord
from coatcheck.core.policy import Policies
from coatcheck.core.problems import Refused
from coatcheck.operators.actor import Actor
from coatcheck.store.contract import Store
from coatcheck.store.operating import JobSurvey, SurveyPage
from coatcheck.store.records import CancelAnswer, CancelDisposition, Tombstone


class JobInFull(Struct, frozen=True):
    """A job with its starts, oldest first; errors with what only an operator may read."""

    job: JobRecord
    attempts: Sequence[AttemptRecord]


class Jobs:
    """What an operator may do to any job.

    Args:
        store: where they are.
        policies: the operations' own; what ends here is kept as long as they say.
    """

    def __init__(self, store: Store, policies: Policies) -> None:
        self._store = store
        self._policies = policies

    async def list(self, survey: JobSurvey) -> SurveyPage:
        """A page of jobs, newest first."""
        return await self._store.survey_jobs(survey, self._store.clock.now())

    async def find(self, job_id: str) -> JobRecord:
        """The job of this id, whoever handed it in.

        Raises:
            Refused: `not-found` or `job-expired`.
        """
        job = await self._store.find_any_job(job_id, self._store.clock.now())
        if job is None:
            raise Refused("not-found", "There is no job of this id.")
        if isinstance(job, Tombstone):
            raise Refused("job-expired", "The job has expired or was erased.")
        return job

    async def show(self, job_id: str) -> JobInFull:
        """The job and its starts.

        Raises:
            Refused: as `find`.
        """
        job = await self.find(job_id)
        return JobInFull(job, await self._store.list_attempts(job.tenant, job.id))

    async def read_payload(self, job_id: str, actor: Actor) -> bytes:
        """What was handed in with the job. That the operator read it stands in the audit log.

        Raises:
            Refused: as `find`.
        """
        job = await self.find(job_id)
        entry = actor.entry(self._store.clock.now(), "job.read-payload", job.id, job.tenant)
        payload = await self._store.read_payload(job.tenant, job.id, entry)
        if payload is None:
            raise Refused("job-expired", "The job has expired or was erased.")
        return payload

    async def cancel(self, job_id: str, reason: str | None, actor: Actor) -> CancelAnswer:
        """End a job that waits, tell one that runs to stop. Repeating it is safe.

        Raises:
            Refused: as `find`, or `job-already-finished`.
        """
        job = await self.find(job_id)
        now = self._store.clock.now()
        entry = actor.entry(now, "job.cancel", job.id, job.tenant, {"reason": reason})
        answer = await self._store.cancel_job(job.tenant, job.id, reason, self._policies, now, entry)
        if not isinstance(answer, CancelAnswer):
            raise Refused("job-expired", "The job has expired or was erased.")
        if answer.disposition is CancelDisposition.ALREADY_FINISHED:
            raise Refused("job-already-finished", f"The job has {answer.job.status} already.")
        return answer
