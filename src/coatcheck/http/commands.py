"""What a client may do to its job: cancel it, erase it."""

from typing import assert_never

from coatcheck.admission.admit import parse_body
from coatcheck.admission.input_faults import escape_step
from coatcheck.admission.media_type import require_json
from coatcheck.app import Operation
from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import FieldError, Refused
from coatcheck.http.body import read_body
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import (
    advice_on,
    find_job,
    job_body,
    job_expired,
    job_headers,
    job_not_finished,
    require_job,
)
from coatcheck.http.negotiation import require_json_accepted
from coatcheck.http.refusals import not_found
from coatcheck.http.services import HttpServices
from coatcheck.store.records import CancelAnswer, CancelDisposition, EraseDisposition


class Cancel:
    """POST to a job's cancel URL. Repeating it is safe."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        require_json_accepted(exchange.headers)
        reason = await self._reason(exchange)
        await find_job(self._services, exchange)
        store = self._services.store
        answer = await store.cancel_job(
            exchange.tenant, exchange.job_id, reason, self._services.app.policies, store.clock.now()
        )
        if not isinstance(answer, CancelAnswer):
            require_job(exchange, answer)
            raise not_found()
        match answer.disposition:
            case CancelDisposition.CANCELLED | CancelDisposition.ALREADY_CANCELLED:
                await self._answer(exchange, 200, answer.job)
            case CancelDisposition.REQUESTED:
                await self._answer(exchange, 202, answer.job)
            case CancelDisposition.ALREADY_FINISHED:
                raise Refused("job-already-finished", f"The job has {answer.job.status} already.")
            case _:
                assert_never(answer.disposition)

    async def _answer(self, exchange: Exchange, status: int, job: JobRecord) -> None:
        await exchange.answer_json(status, job_body(exchange, job), job_headers(job, advice_on(self._services, job)))

    async def _reason(self, exchange: Exchange) -> str | None:
        timeout_s = self._services.settings.body_timeout_s
        raw_body = await read_body(exchange, limits.CANCEL_BODY_BYTES_MAX, timeout_s)
        if not raw_body:
            return None
        require_json(exchange.headers.get(b"content-type", ()))
        return read_reason(parse_body(raw_body))


class Erase:
    """DELETE of a job."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        store = self._services.store
        job = await find_job(self._services, exchange)
        match await store.erase_job(exchange.tenant, exchange.job_id, store.clock.now()):
            case EraseDisposition.ERASED:
                await exchange.answer_empty(204)
            case EraseDisposition.NOT_FINISHED:
                raise job_not_finished(self._services, job)
            case EraseDisposition.ALREADY_GONE:
                raise job_expired()
            case None:
                raise not_found()


def read_reason(body: Json) -> str | None:
    """The reason in a cancellation's body.

    Raises:
        Refused: `invalid-request`.
    """
    errors = list(_faults(body))
    if errors:
        raise Refused("invalid-request", 'The body must be {"reason": "…"} or empty.', errors=errors)
    reason = body.get("reason") if isinstance(body, dict) else None
    return reason if isinstance(reason, str) else None


def _faults(body: Json) -> list[FieldError]:
    if not isinstance(body, dict):
        return [FieldError("", "This must be an object.")]
    unknown = [name for name in body if name != "reason"]
    faults = [FieldError("/" + escape_step(name), "This member is not known.") for name in unknown]
    reason = body.get("reason")
    if reason is not None and not isinstance(reason, str):
        faults.insert(0, FieldError("/reason", "This must be a text."))
    elif reason is not None and len(reason) > limits.CANCEL_REASON_CHARS_MAX:
        faults.insert(0, FieldError("/reason", f"This must have at most {limits.CANCEL_REASON_CHARS_MAX} characters."))
    return faults[: limits.INPUT_ERRORS_LISTED_MAX]
