"""Handing in work: POST to an operation's collection."""

from typing import assert_never

from coatcheck.admission.admit import admit
from coatcheck.admission.headers import read_options
from coatcheck.admission.media_type import require_json
from coatcheck.app import Operation
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.http.body import read_body
from coatcheck.http.disconnect import while_connected
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import job_body, job_headers, preferences_of
from coatcheck.http.negotiation import require_json_accepted
from coatcheck.http.prefer import preference_applied
from coatcheck.http.problem_answers import draining
from coatcheck.http.services import HttpServices
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Accepted, Disposition, KeyConflict, KeyOfExpiredJob, Replayed

_REPLAYED = (b"idempotent-replayed", b"true")

_log = get_logger("http.submit")


class Submit:
    """Admits, accepts and answers. Nothing is refused any more once the job is durable."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._clock = services.store.clock
        self._metrics = services.metrics

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        began_s = self._clock.monotonic_s()
        try:
            disposition = await self._accept(exchange, operation)
            job, is_replayed = self._job_of(disposition, exchange, operation)
        except (Refused, StoreUnavailable) as error:
            code = error.code if isinstance(error, Refused) else "store-unavailable"
            self._metrics.count("refused", operation=operation.name, code=code)
            raise
        self._metrics.count("replayed" if is_replayed else "accepted", operation=operation.name)
        took_s = self._clock.monotonic_s() - began_s
        self._metrics.observe("acceptance_seconds", took_s, operation=operation.name)
        await self._answer(exchange, job, is_replayed, took_s)

    async def _accept(self, exchange: Exchange, operation: Operation) -> Disposition:
        services, headers = self._services, exchange.headers
        if services.draining.has_begun:
            raise draining()
        require_json_accepted(headers)
        require_json(headers.get(b"content-type", ()))
        options = read_options(headers, exchange.correlation_id, self._clock.now())
        body = await read_body(exchange, operation.policy.payload_bytes_max, services.settings.body_timeout_s)
        services.fault_point("request-read")
        admitted = admit(operation, body, options, self._clock.now())
        return await services.acceptance.accept(operation, admitted, exchange.tenant)

    def _job_of(self, disposition: Disposition, exchange: Exchange, operation: Operation) -> tuple[JobRecord, bool]:
        match disposition:
            case Accepted(job):
                return job, False
            case Replayed(job):
                return job, True
            case KeyConflict():
                self._metrics.count("key_conflicts", operation=operation.name)
                detail = "The same Idempotency-Key came with a different body for this operation before."
                raise Refused("idempotency-key-reused", detail)
            case KeyOfExpiredJob(job_id):
                url = exchange.urls.status_url(operation.name, job_id)
                detail = f"The Idempotency-Key belongs to the job {url}, which has expired."
                location = [("Location", url)]
                raise Refused("job-expired", detail, status=409, headers=location, members={"status_url": url})
            case _:
                assert_never(disposition)

    async def _answer(self, exchange: Exchange, job: JobRecord, is_replayed: bool, took_s: float) -> None:
        preferences = preferences_of(self._services, exchange)
        wait_s = preferences.wait_s
        if wait_s is not None and not job.status.is_final:
            job = await while_connected(exchange.receive, self._wait(exchange, job, max(wait_s - took_s, 0.0)))
        is_done = wait_s is not None and job.status.is_final
        location = exchange.urls.status_url(job.operation, job.id)
        headers = [(b"location", location.encode("ascii")), *job_headers(self._services, job)]
        applied = preference_applied(wait_s, preferences.respond_async and not is_done)
        if applied is not None:
            headers.append(applied)
        if is_replayed:
            headers.append(_REPLAYED)
        await exchange.answer_json(200 if is_done else 202, job_body(exchange, job), headers)

    async def _wait(self, exchange: Exchange, job: JobRecord, timeout_s: float) -> JobRecord:
        """The job once it is final, or as last seen. It is accepted: what cannot be read now is no refusal any more."""
        try:
            found = await self._services.watch.wait(exchange.tenant, job.id, _is_final, timeout_s)
        except StoreUnavailable:
            _log.warning("wait_ended_early", job=job.id, correlation_id=exchange.correlation_id)
            return job
        return found if isinstance(found, JobRecord) else job


def _is_final(job: JobRecord) -> bool:
    return job.status.is_final
