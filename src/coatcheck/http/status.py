"""Reading one job: at once, after a wait, only if it changed, or as a live stream."""

from functools import cache

from coatcheck.app import Operation
from coatcheck.completion.representation import etag
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.http.conditional import Condition, read_condition
from coatcheck.http.disconnect import while_connected
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import advice_on, find_job, job_body, job_headers, preferences_of, require_job
from coatcheck.http.negotiation import JobForm, choose_job_form
from coatcheck.http.prefer import preference_applied
from coatcheck.http.services import HttpServices
from coatcheck.http.standing import Standing
from coatcheck.http.stream import Streams


class ReadStatus:
    """Answers 200, 304, a stream, or the problem of a job that is not there."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._streams = Streams(services)
        self._reads = cache(
            lambda name, answer: services.metrics.counter("status_reads", operation=name, answer=answer)
        )

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        form = choose_job_form(exchange.headers)
        try:
            job = await find_job(self._services, exchange)
            if form is JobForm.STREAM:
                self._count(operation, "stream")
                await self._streams.serve(exchange, job)
            else:
                await self._answer(exchange, operation, job)
        except Refused as refused:
            if refused.status == 410:
                self._count(operation, "410")
            raise

    async def _answer(self, exchange: Exchange, operation: Operation, job: JobRecord) -> None:
        condition = read_condition(exchange.headers.get(b"if-none-match", ()))
        wait_s = preferences_of(self._services, exchange).wait_s
        if wait_s is not None and not _is_enough(job, condition):
            job = await while_connected(exchange.receive, self._wait(exchange, condition, wait_s))
        place = await self._services.estimates.place_of(job)
        headers = job_headers(job, advice_on(self._services, job, place))
        applied = preference_applied(wait_s, is_async=False)
        if applied is not None:
            headers.append(applied)
        is_unchanged = condition.matches(etag(job))
        self._count(operation, "wait" if wait_s is not None else "304" if is_unchanged else "200")
        if is_unchanged:
            await exchange.answer_empty(304, headers)
        else:
            await exchange.answer_json(200, job_body(exchange, job), headers)

    async def _wait(self, exchange: Exchange, condition: Condition, wait_s: float) -> JobRecord:
        standing = Standing(self._services, exchange)
        return require_job(
            exchange, await standing.wait(exchange.job_id, lambda job: _is_enough(job, condition), wait_s)
        )

    def _count(self, operation: Operation, answer: str) -> None:
        self._reads(operation.name, answer).add()


def _is_enough(job: JobRecord, condition: Condition) -> bool:
    """Whether a wait is over: at the end of the job, or at any version the client does not hold."""
    return job.status.is_final or (bool(condition.tags) and not condition.matches(etag(job)))
