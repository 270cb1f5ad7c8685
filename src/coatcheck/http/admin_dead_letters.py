"""/admin/dead-letters and /admin/redrives: failed jobs, looked at and run again, one by one or many together."""

from typing import Annotated

from msgspec import structs
from pydantic import Field

from coatcheck.admission.media_type import require_json
from coatcheck.completion.operator_view import operator_fields
from coatcheck.completion.representation import instant
from coatcheck.core import limits
from coatcheck.core.problems import FieldError
from coatcheck.http.admin_answers import answer_fields
from coatcheck.http.admin_filters import FILTERS, BadFilter, filter_of, position_of
from coatcheck.http.admin_jobs import answer_page, job_id_of, survey_of
from coatcheck.http.admin_requests import Wish, actor_of, cursor_of, place_of, read_query, read_wish
from coatcheck.http.body import read_body
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.dead_letters import DeadLetters
from coatcheck.operators.faults import check_number, invalid
from coatcheck.operators.jobs import Jobs
from coatcheck.store.operating import JobFilter, JobSurvey

_FILTERS = tuple(name for name in FILTERS if name != "status")


class RedriveWish(Wish):
    """Which dead letters are run again."""

    tenant: str | None = None
    operation: str | None = None
    category: str | None = None
    created_since: str | None = None
    created_until: Annotated[str | None, Field(description="Now, if left out.")] = None
    finished_since: str | None = None
    finished_until: str | None = None
    limit: Annotated[int, Field(description="How many at most by this request.")] = limits.REDRIVES_DEFAULT
    rate: Annotated[float, Field(description="How many a second.")] = limits.REDRIVE_RATE_DEFAULT
    dry_run: Annotated[bool, Field(description="Only count them.")] = False
    all: Annotated[bool, Field(description="All of them; needed where no filter is given.")] = False
    cursor: Annotated[str | None, Field(description="next_cursor of the request before.")] = None


class DeadLetterRoutes:
    """Answers with jobs as operators see them."""

    def __init__(self, services: HttpServices, jobs: Jobs, dead_letters: DeadLetters) -> None:
        self._services = services
        self._jobs = jobs
        self._dead_letters = dead_letters

    async def list(self, exchange: Exchange) -> None:
        await answer_page(exchange, await self._dead_letters.list(survey_of(exchange, *_FILTERS)))

    async def redrive(self, exchange: Exchange) -> None:
        """A body is the payload to run with instead."""
        read_query(exchange)
        job_id = job_id_of(exchange)
        job = await self._jobs.find(job_id)
        bytes_max = self._services.app.policies.of(job.operation).payload_bytes_max
        body = await read_body(exchange, bytes_max, self._services.settings.body_timeout_s)
        if body:
            require_json(exchange.headers.get(b"content-type", ()))
        new = await self._dead_letters.redrive(job_id, body or None, actor_of(exchange))
        location = f"{exchange.urls.prefix}/admin/jobs/{new.id}"
        await answer_fields(exchange, operator_fields(new), 201, location)

    async def redrive_many(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, RedriveWish)
        check_number(wish.limit, 1, limits.REDRIVES_MAX, "/limit")
        check_number(wish.rate, limits.REDRIVE_RATE_MIN, limits.REDRIVE_RATE_MAX, "/rate")
        if wish.limit / wish.rate > limits.REDRIVES_S_MAX:
            detail = f"With this limit it would take longer than {limits.REDRIVES_S_MAX:g} seconds; ask for fewer."
            raise invalid(FieldError("/rate", detail))
        wanted = self._filter(wish)
        if wish.dry_run:
            found = await self._dead_letters.count(wanted)
            await answer_fields(exchange, {"count": found.count, "first": found.first_ids})
            return
        position = position_of(None if wish.cursor is None else place_of(wish.cursor))
        survey, actor = JobSurvey(wanted, wish.limit, position), actor_of(exchange)
        done = await self._dead_letters.redrive_many(
            survey, wish.rate, actor, require_leave=lambda: exchange.gatekeeper.admit_again(exchange)
        )
        fields = {
            "redriven": done.redriven,
            "left": done.left,
            "created_until": instant(wanted.created_until),
            "next_cursor": None if done.position is None else cursor_of(done.position),
        }
        await answer_fields(exchange, fields)

    def _filter(self, wish: RedriveWish) -> JobFilter:
        """What fails again meanwhile is a new job, which is not to come round again."""
        try:
            wanted = filter_of({name: getattr(wish, name) for name in _FILTERS})
        except BadFilter as error:
            raise invalid(FieldError(f"/{error.name}", error.detail)) from None
        if wanted == JobFilter() and not wish.all:
            raise invalid(FieldError("/all", "Say which dead letters, by filters, or that all are meant."))
        now = self._services.store.clock.now()
        until = now if wanted.created_until is None else min(now, wanted.created_until)
        return structs.replace(wanted, created_until=until)
