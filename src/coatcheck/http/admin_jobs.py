"""/admin/jobs: jobs of all tenants."""

from typing import Annotated

from pydantic import Field

from coatcheck.completion.operator_view import operator_attempt_fields, operator_fields
from coatcheck.core import limits
from coatcheck.core.ids import is_job_id
from coatcheck.core.problems import FieldError, Refused
from coatcheck.http.admin_answers import answer_fields, page_fields
from coatcheck.http.admin_filters import FILTERS, BadFilter, filter_of, position_of
from coatcheck.http.admin_requests import Wish, actor_of, cursor_of, page_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.refusals import not_found
from coatcheck.http.services import HttpServices
from coatcheck.operators.faults import invalid
from coatcheck.operators.jobs import Jobs
from coatcheck.store.operating import JobSurvey, SurveyPage


class CancelWish(Wish):
    """Why a job is cancelled."""

    reason: Annotated[str | None, Field(description="For the job's client to read.")] = None


class JobRoutes:
    """Answers with jobs as operators see them."""

    def __init__(self, services: HttpServices, jobs: Jobs) -> None:
        self._services = services
        self._jobs = jobs

    async def list(self, exchange: Exchange) -> None:
        await answer_page(exchange, await self._jobs.list(survey_of(exchange, *FILTERS)))

    async def show(self, exchange: Exchange) -> None:
        read_query(exchange)
        found = await self._jobs.show(job_id_of(exchange))
        attempts = [operator_attempt_fields(attempt) for attempt in found.attempts]
        await answer_fields(exchange, {**operator_fields(found.job), "attempts": attempts})

    async def show_payload(self, exchange: Exchange) -> None:
        read_query(exchange)
        payload = await self._jobs.read_payload(job_id_of(exchange), actor_of(exchange))
        await exchange.answer_json(200, payload, [(b"cache-control", b"no-store")])

    async def cancel(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, CancelWish)
        chars_max = limits.CANCEL_REASON_CHARS_MAX
        if wish.reason is not None and len(wish.reason) > chars_max:
            raise invalid(FieldError("/reason", f"This must have at most {chars_max} characters."))
        answer = await self._jobs.cancel(job_id_of(exchange), wish.reason, actor_of(exchange))
        await answer_fields(exchange, operator_fields(answer.job), 200 if answer.job.status.is_final else 202)


def survey_of(exchange: Exchange, *filters: str) -> JobSurvey:
    """The page that is asked for.

    Raises:
        Refused: `invalid-parameter` or `invalid-cursor`.
    """
    parameters = read_query(exchange, "limit", "cursor", *filters)
    size, place = page_of(parameters)
    try:
        wanted = filter_of({name: parameters.get(name) for name in filters})
    except BadFilter as error:
        raise Refused("invalid-parameter", f"{error.name}: {error.detail}") from None
    return JobSurvey(wanted, size, position_of(place))


async def answer_page(exchange: Exchange, page: SurveyPage) -> None:
    """Answer with jobs. A page may hold fewer than were asked for, or none, and still name where to go on."""
    cursor = None if page.position is None else cursor_of(page.position)
    await answer_fields(exchange, page_fields("jobs", [operator_fields(job) for job in page.jobs], cursor))


def job_id_of(exchange: Exchange) -> str:
    """The id in the path.

    Raises:
        Refused: `not-found`.
    """
    if not is_job_id(exchange.item):
        raise not_found()
    return exchange.item
