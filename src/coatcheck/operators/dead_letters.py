"""Dead letters: failed jobs that wait until an operator looks at them, and runs them again or lets them expire.

Redriving is done once for each, whoever asks and however often: what was redriven is no dead letter any more. So a
run over many that was broken off is simply begun again. An operator's redrive is not refused by a tenant's limits.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, assert_never

from msgspec import Struct, structs

from coatcheck.admission.admit import check_body
from coatcheck.app import App
from coatcheck.core import limits
from coatcheck.core.ids import RANDOM_BITS, make_job_id
from coatcheck.core.job import JobRecord
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import Refused
from coatcheck.operators.actor import Actor
from coatcheck.operators.jobs import Jobs
from coatcheck.store.contract import Store
from coatcheck.store.operating import JobFilter, JobSurvey, SurveyPage
from coatcheck.store.records import RedriveRefusal, Redriving

AT_ONCE_MAX: Final = 25
FIRST_IDS: Final = 10


class Found(Struct, frozen=True):
    """How many dead letters are meant, and the ids of the oldest."""

    count: int
    first_ids: Sequence[str]


class Redriven(Struct, frozen=True):
    """What a run over many did: how many new jobs it made, and how many it left because their tenant is revoked.

    `position` is where to go on; None: all that is meant was looked at.
    """

    redriven: int = 0
    left: int = 0
    position: str | None = None


async def _go_on() -> None:
    """Nobody is asked."""


class DeadLetters:
    """What an operator may do to failed jobs.

    Args:
        store: where they are.
        jobs: the same jobs, one by one.
        app: the operations, where they are at hand: a corrected payload is checked against its operation then.
        pause: waits so many seconds.
    """

    def __init__(
        self, store: Store, jobs: Jobs, app: App | None, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._app = app
        self._pause = pause

    async def list(self, survey: JobSurvey) -> SurveyPage:
        """A page of dead letters, newest first."""
        wanted = structs.replace(survey.filter, is_dead_letter=True)
        return await self._jobs.list(structs.replace(survey, filter=wanted))

    async def count(self, wanted: JobFilter) -> Found:
        """Count what `redrive_many` would redrive now."""
        count, first_ids, position = 0, list[str](), None
        while True:
            survey = JobSurvey(wanted, limits.SWEEP_BATCH_MAX, position)
            page = await self._store.next_dead_letters(survey, self._store.clock.now())
            count += len(page.jobs)
            first_ids += [job.id for job in page.jobs[: FIRST_IDS - len(first_ids)]]
            if page.position is None:
                return Found(count, first_ids)
            position = page.position

    async def redrive(self, job_id: str, payload: bytes | None, actor: Actor) -> JobRecord:
        """Run a failed job again as a new one, with another payload if one is given; the new job.

        Asked again, it answers with the same new job, and with what became of it.

        Raises:
            Refused: `not-found`, `job-expired`, `job-not-failed` or `conflict`; with a payload also
                `malformed-json`, `payload-too-large` or `invalid-request`.
        """
        job = await self._jobs.find(job_id)
        if payload is not None:
            self._check(job, payload)
        answer = await self._redrive(job, payload, actor)
        match answer:
            case JobRecord():
                return answer
            case RedriveRefusal.NOT_FOUND:
                raise Refused("job-expired", "The job, or the one it was redriven as, has expired or was erased.")
            case RedriveRefusal.NOT_FAILED:
                raise Refused("job-not-failed", f"The job is {job.status}; only a failed job is run again.")
            case RedriveRefusal.TENANT_REVOKED:
                raise Refused("conflict", f"Tenant {job.tenant!r} is revoked and gets no new work.")
            case _:
                assert_never(answer)

    async def redrive_many(
        self,
        survey: JobSurvey,
        rate: float,
        actor: Actor,
        on_redriven: Callable[[Redriven], None] = lambda done: None,
        require_leave: Callable[[], Awaitable[None]] = _go_on,
    ) -> Redriven:
        """Redrive at most `survey.limit` dead letters, oldest first, `rate` a second.

        Bound `created_until` to the moment it begins: else those that fail again meanwhile come round again. What
        `require_leave` raises, which is asked from time to time, ends it there.
        """
        began_s = self._store.clock.monotonic_s()
        done = Redriven(position=survey.position)
        while True:
            size = min(survey.limit - done.redriven, max(1, min(AT_ONCE_MAX, round(rate))))
            now = self._store.clock.now()
            page = await self._store.next_dead_letters(JobSurvey(survey.filter, size, done.position), now)
            answers = await asyncio.gather(*(self._redrive(job, None, actor) for job in page.jobs))
            new = sum(isinstance(answer, JobRecord) for answer in answers)
            left = sum(answer is RedriveRefusal.TENANT_REVOKED for answer in answers)
            done = Redriven(done.redriven + new, done.left + left, page.position)
            on_redriven(done)
            if page.position is None or done.redriven >= survey.limit:
                return done
            ahead_s = done.redriven / rate - (self._store.clock.monotonic_s() - began_s)
            if ahead_s > 0:
                await self._pause(ahead_s)
            await require_leave()

    async def _redrive(self, job: JobRecord, payload: bytes | None, actor: Actor) -> JobRecord | RedriveRefusal:
        now_us = self._store.clock.now_us()
        new_id = make_job_id(now_us, secrets.randbits(RANDOM_BITS))
        redriving = Redriving(job.tenant, job.id, new_id, now_us // 1000, payload)
        details: dict[str, Json] = {"redriven_as": new_id, "has_new_payload": payload is not None}
        entry = actor.entry(now_us // 1000, "job.redrive", job.id, job.tenant, details)
        return await self._store.redrive_job(redriving, entry)

    def _check(self, job: JobRecord, payload: bytes) -> None:
        operation = None if self._app is None else self._app.operations.get(job.operation)
        if operation is None:
            detail = f"Operation {job.operation!r} is not known here: nobody can say whether the payload fits it."
            raise Refused("invalid-request", detail)
        check_body(operation, payload)
