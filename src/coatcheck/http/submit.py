"""Handing in work: POST to an operation's collection."""

from dataclasses import dataclass
from functools import cache
from typing import assert_never

from coatcheck.admission.admit import admit
from coatcheck.admission.budgets import budget_exceeded
from coatcheck.admission.headers import read_options
from coatcheck.admission.media_type import require_json
from coatcheck.admission.modes import require_taking
from coatcheck.admission.options import Admitted, SubmissionOptions
from coatcheck.admission.queue_full import jobs_too_many, queue_full
from coatcheck.admission.rates import SUBMISSIONS
from coatcheck.app import Operation
from coatcheck.core import limits
from coatcheck.core.costs import OverBudget, units_of
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.http.aside import Aside
from coatcheck.http.body import read_body
from coatcheck.http.disconnect import while_connected
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import advice_on, job_body, job_headers, preferences_of
from coatcheck.http.negotiation import require_json_accepted
from coatcheck.http.prefer import preference_applied
from coatcheck.http.refusals import draining
from coatcheck.http.room import Room
from coatcheck.http.services import HttpServices
from coatcheck.http.standing import Standing
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Counter, Histogram, Metrics
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import Accepted, Disposition, KeyConflict, KeyOfExpiredJob, QueueFull, Replayed

_REPLAYED = (b"idempotent-replayed", b"true")

_log = get_logger("http.submit")


@dataclass(frozen=True, slots=True)
class _Series:
    """What every acceptance of one operation raises."""

    accepted: Counter
    replayed: Counter
    acceptance_seconds: Histogram

    @classmethod
    def of(cls, metrics: Metrics, operation: str) -> "_Series":
        return cls(
            metrics.counter("accepted", operation=operation),
            metrics.counter("replayed", operation=operation),
            metrics.histogram("acceptance_seconds", operation=operation),
        )


class Submit:
    """Admits, accepts and answers. Nothing is refused any more once the job is durable.

    `room` holds large bodies from their first byte to their commit, and `aside` is where they are read through.
    """

    def __init__(self, services: HttpServices, room: Room, aside: Aside) -> None:
        self._services = services
        self._room = room
        self._aside = aside
        self._clock = services.store.clock
        self._metrics = services.metrics
        self._series = cache(lambda operation: _Series.of(services.metrics, operation))

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        began_s = self._clock.monotonic_s()
        try:
            disposition = await self._accept(exchange, operation)
            job, is_replayed = self._job_of(disposition, exchange, operation)
        except (Refused, StoreUnavailable) as error:
            code = error.code if isinstance(error, Refused) else "store-unavailable"
            self._metrics.count("refused", operation=operation.name, code=code)
            self._tell_rates(exchange, operation)
            raise
        took_s = self._clock.monotonic_s() - began_s
        series = self._series(operation.name)
        (series.replayed if is_replayed else series.accepted).add()
        series.acceptance_seconds.observe(took_s)
        self._tell_rates(exchange, operation)
        await self._answer(exchange, job, is_replayed, took_s)

    def _tell_rates(self, exchange: Exchange, operation: Operation) -> None:
        rates = self._services.rates
        if rates.has(SUBMISSIONS):
            exchange.rate_fields = rates.fields(SUBMISSIONS, exchange.tenant, operation.name)

    async def _accept(self, exchange: Exchange, operation: Operation) -> Disposition:
        services, headers = self._services, exchange.headers
        if services.draining.has_begun:
            raise draining()
        await require_taking(services.directory, operation.name, exchange.tenant)
        require_json_accepted(headers)
        require_json(headers.get(b"content-type", ()))
        options = read_options(headers, exchange.correlation_id, self._clock.now())
        with self._room.share(exchange.tenant) as share:
            body = await read_body(
                exchange, operation.policy.payload_bytes_max, services.settings.body_timeout_s, share
            )
            if exchange.has_waited:
                await require_taking(services.directory, operation.name, exchange.tenant)
            services.fault_point("request-read")
            admitted = await self._admit(operation, body, options)
            disposition = await services.acceptance.accept(operation, admitted, exchange.tenant)
        if admitted.costs and isinstance(disposition, Accepted):
            for kind, units in admitted.costs:
                self._metrics.count("cost_accepted", units_of(units), operation=operation.name, kind=kind)
        return disposition

    async def _admit(self, operation: Operation, body: bytes, options: SubmissionOptions) -> Admitted:
        if len(body) <= limits.BODY_AT_ONCE_BYTES_MAX:
            return admit(operation, body, options, self._clock.now())
        return await self._aside.run(lambda: admit(operation, body, options, self._clock.now()))

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
            case QueueFull():
                wait_s = self._services.estimates.room_after_s(operation.name, jobs_too_many(disposition))
                raise queue_full(disposition, wait_s)
            case OverBudget():
                raise budget_exceeded(disposition, self._clock.now())
            case _:
                assert_never(disposition)

    async def _answer(self, exchange: Exchange, job: JobRecord, is_replayed: bool, took_s: float) -> None:
        advice = advice_on(self._services, job)
        if advice is not None and advice.start is not None and not is_replayed:
            self._services.start_checks.note(job, advice.start)
        preferences = preferences_of(self._services, exchange)
        wait_s = preferences.wait_s
        if wait_s is not None and not job.status.is_final:
            job = await while_connected(exchange.receive, self._wait(exchange, job, max(wait_s - took_s, 0.0)))
            advice = advice_on(self._services, job)
        is_done = wait_s is not None and job.status.is_final
        location = exchange.urls.status_url(job.operation, job.id)
        headers = [(b"location", location.encode("ascii")), *job_headers(job, advice)]
        applied = preference_applied(wait_s, preferences.respond_async and not is_done)
        if applied is not None:
            headers.append(applied)
        if is_replayed:
            headers.append(_REPLAYED)
        await exchange.answer_json(200 if is_done else 202, job_body(exchange, job), headers)

    async def _wait(self, exchange: Exchange, job: JobRecord, timeout_s: float) -> JobRecord:
        """The job once it is final, or as last seen. It is accepted: what cannot be read now is no refusal any more."""
        try:
            found = await Standing(self._services, exchange).wait(job.id, _is_final, timeout_s)
        except (StoreUnavailable, Refused):
            _log.warning("wait_ended_early", job=job.id, correlation_id=exchange.correlation_id)
            return job
        return found if isinstance(found, JobRecord) else job


def _is_final(job: JobRecord) -> bool:
    return job.status.is_final
