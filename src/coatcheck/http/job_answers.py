"""What the answers about one job have in common: finding it, its headers, its representation."""

from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache

from coatcheck.completion.estimates import Advice
from coatcheck.completion.representation import etag, instant
from coatcheck.core import limits
from coatcheck.core.ids import is_job_id
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.problems import Refused
from coatcheck.http.exchange import Exchange
from coatcheck.http.prefer import NO_PREFERENCES, Preferences, read_preferences
from coatcheck.http.refusals import not_found
from coatcheck.http.services import HttpServices
from coatcheck.store.records import Tombstone

CACHE_CONTROL = (b"cache-control", b"private, no-cache")
VARY = (b"vary", b"Accept, Prefer")


async def find_job(services: HttpServices, exchange: Exchange) -> JobRecord:
    """The job the request's path names.

    Raises:
        Refused: `not-found`, also for a job of another operation or tenant; `job-expired`.
        StoreUnavailable: it could not be read.
    """
    if not is_job_id(exchange.job_id):
        raise not_found()
    found = await services.store.find_job(exchange.tenant, exchange.job_id, services.store.clock.now())
    return require_job(exchange, found)


def require_job(exchange: Exchange, found: JobRecord | Tombstone | None) -> JobRecord:
    """What was found, if it is a job of the request's operation.

    Raises:
        Refused: `not-found` or `job-expired`.
    """
    if found is None or (exchange.operation is not None and found.operation != exchange.operation.name):
        raise not_found()
    if isinstance(found, Tombstone):
        raise job_expired()
    return found


def job_expired() -> Refused:
    return Refused("job-expired", "This job ended, was kept for its time or erased, and is gone.")


def preferences_of(services: HttpServices, exchange: Exchange) -> Preferences:
    """What the client prefers, with a wait only where there is room for one. HEAD never waits."""
    values = exchange.headers.get(b"prefer")
    if not values or exchange.is_head:
        return NO_PREFERENCES
    preferences = read_preferences(values, services.settings.wait_max_s)
    return replace(preferences, wait_s=None) if services.watch.is_full else preferences


def job_not_finished(services: HttpServices, job: JobRecord) -> Refused:
    seconds = services.estimates.advise(job).retry_after_s
    detail = f"The job is {job.status}: it has no result yet, and only a finished job can be erased."
    return Refused("job-not-finished", detail, headers=[("Retry-After", str(seconds))])


def advice_on(services: HttpServices, job: JobRecord, place: int | None = None) -> Advice | None:
    """What to tell of an open job; None of one that has ended. `place`: in the line of its tenant, where known."""
    return None if job.status.is_final else services.estimates.advise(job, place)


def job_headers(job: JobRecord, advice: Advice | None) -> list[tuple[bytes, bytes]]:
    """The headers every representation of a job carries."""
    headers = [(b"etag", etag(job).encode("ascii")), CACHE_CONTROL, VARY]
    if advice is not None:
        headers.append((b"retry-after", b"%d" % advice.retry_after_s))
        if advice.start is not None:
            headers.append((b"job-estimated-start", f"{instant(advice.start.likely)}".encode("ascii")))
    elif job.expires_at is not None:
        headers.append(sunset(job.expires_at))
    return headers


def sunset(at: InstantMs) -> tuple[bytes, bytes]:
    """When the resource will be gone (RFC 8594)."""
    return b"sunset", _http_date(min(at, limits.INSTANT_MS_MAX) // 1000)


@lru_cache(maxsize=4096)
def _http_date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode("ascii")


def job_body(exchange: Exchange, job: JobRecord) -> bytes:
    return exchange.urls.represent(job)
