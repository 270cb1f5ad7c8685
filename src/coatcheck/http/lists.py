"""Lists: a tenant's jobs page by page, and the attempts of one job."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import orjson

from coatcheck.app import Operation
from coatcheck.completion.representation import fields_of, represent_attempt
from coatcheck.core import limits
from coatcheck.core.problems import Refused
from coatcheck.core.states import Status
from coatcheck.http.cursor import make_cursor, read_cursor
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import CACHE_CONTROL, VARY, find_job
from coatcheck.http.negotiation import require_json_accepted
from coatcheck.http.services import HttpServices
from coatcheck.store.records import JobPage, JobQuery

ALL_JOBS_PATH = "/v1/jobs"
_LIMIT = re.compile(r"[1-9][0-9]{0,3}")
# What is repeated to whoever sent it: nothing that a page or a terminal might take for more than a name.
_NAME = re.compile(f"[A-Za-z0-9_.-]{{1,{limits.PARAMETER_NAME_CHARS_SHOWN}}}")
_PARAMETERS = ("status", "limit", "cursor")


class ListJobs:
    """The jobs of one operation, or of all."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation | None = None) -> None:
        require_json_accepted(exchange.headers)
        parameters = read_parameters(exchange.scope.get("query_string", b""))
        query = _query(exchange.tenant, operation, parameters)
        page = await self._services.store.list_jobs(query, self._services.store.clock.now())
        cursor = make_cursor(query, page.jobs[-1].id) if page.has_more and page.jobs else None
        headers = [CACHE_CONTROL, VARY]
        if cursor is not None:
            headers.append((b"link", _next_link(exchange, operation, parameters, cursor)))
        await exchange.answer_json(200, _page_body(exchange, page, cursor), headers)


class ListAttempts:
    """The starts of one job."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        require_json_accepted(exchange.headers)
        job = await find_job(self._services, exchange)
        attempts = await self._services.store.list_attempts(exchange.tenant, job.id)
        body = orjson.dumps({"attempts": [represent_attempt(attempt) for attempt in attempts]})
        await exchange.answer_json(200, body, [CACHE_CONTROL, VARY])


def read_parameters(query_string: bytes, known: Collection[str] = _PARAMETERS) -> Mapping[str, str]:
    """The query parameters by name, each known and given once.

    Raises:
        Refused: `invalid-parameter`.
    """
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=limits.QUERY_PARAMETERS_MAX,
        )
    except ValueError:
        raise Refused("invalid-parameter", "The query is not readable as a few parameters in UTF-8.") from None
    parameters = dict(pairs)
    for name in parameters.keys() - set(known):
        what = repr(name) if _NAME.fullmatch(name) else "What was sent"
        detail = f"{what} is no parameter here; those that are: {', '.join(known) or 'none'}."
        raise Refused("invalid-parameter", detail)
    if len(parameters) != len(pairs):
        raise Refused("invalid-parameter", "A parameter stands more than once.")
    return parameters


def _query(tenant: str, operation: Operation | None, parameters: Mapping[str, str]) -> JobQuery:
    query = JobQuery(
        tenant=tenant,
        limit=page_size(parameters.get("limit")),
        operation=None if operation is None else operation.name,
        status=_status(parameters.get("status")),
    )
    cursor = parameters.get("cursor")
    return query if cursor is None else replace(query, before=read_cursor(query, cursor))


def page_size(text: str | None) -> int:
    """How many a page of a list is to have.

    Raises:
        Refused: `invalid-parameter`.
    """
    if text is None:
        return limits.PAGE_SIZE_DEFAULT
    if not _LIMIT.fullmatch(text) or int(text) > limits.PAGE_SIZE_MAX:
        raise Refused("invalid-parameter", f"limit must be a whole number from 1 to {limits.PAGE_SIZE_MAX}.")
    return int(text)


def _status(text: str | None) -> Status | None:
    if text is None:
        return None
    try:
        return Status(text)
    except ValueError:
        raise Refused("invalid-parameter", f"status must be one of {', '.join(Status)}.") from None


def _next_link(exchange: Exchange, operation: Operation | None, parameters: Mapping[str, str], cursor: str) -> bytes:
    path = exchange.urls.prefix + ALL_JOBS_PATH if operation is None else exchange.urls.collection_url(operation.name)
    query = urlencode({**parameters, "cursor": cursor})
    return f'<{path}?{query}>; rel="next"'.encode("ascii")


def _page_body(exchange: Exchange, page: JobPage, cursor: str | None) -> bytes:
    jobs = [fields_of(job, exchange.urls.of(job)) for job in page.jobs]
    return orjson.dumps({"jobs": jobs, "next_cursor": cursor})
