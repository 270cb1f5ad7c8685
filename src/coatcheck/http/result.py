"""The result itself, under its own media type, in a form no browser will run."""

import mimetypes
import re
from urllib.parse import quote

from coatcheck.app import Operation
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.core.states import Status
from coatcheck.http.conditional import read_condition
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import CACHE_CONTROL, find_job, job_not_finished, sunset
from coatcheck.http.services import HttpServices
from coatcheck.store.records import StoredResult

# A result may be HTML or SVG that somebody else's input got into: it gets no scripts, no origin, no requests.
_SANDBOX = (b"content-security-policy", b"default-src 'none'; sandbox")
_MEDIA_TYPE = re.compile(r"[!-~]+/[ -~]+")
_UNSAFE_IN_FALLBACK = re.compile(r"[^A-Za-z0-9 ._()+-]")
_UNSAFE_IN_NAME = re.compile(r"[\x00-\x1f\x7f/\\]")
# RFC 8187, attr-char, without what `quote` keeps anyway.
_ATTR_CHARS = "!#$&+^`|"


class ReadResult:
    """Answers 200 with the bytes, or the problem that says why there are none."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def __call__(self, exchange: Exchange, operation: Operation) -> None:
        job = await find_job(self._services, exchange)
        self._require_success(job)
        tag = f'"{job.id}"'
        headers = [(b"etag", tag.encode("ascii")), CACHE_CONTROL]
        if job.result_expires_at is not None:
            headers.append(sunset(job.result_expires_at))
        stored = await self._services.store.read_result(exchange.tenant, job.id, self._services.store.clock.now())
        if stored is None:
            raise Refused("result-expired", "The result was kept for its time and is gone; the job is still kept.")
        if read_condition(exchange.headers.get(b"if-none-match", ())).matches(tag):
            await exchange.answer_empty(304, headers)
            return
        headers += [_SANDBOX, (b"content-disposition", content_disposition(_file_name(job, stored)))]
        await exchange.answer(200, _content_type(stored), stored.body, headers)

    def _require_success(self, job: JobRecord) -> None:
        match job.status:
            case Status.SUCCEEDED:
                return
            case Status.FAILED:
                raise Refused("job-failed", "The job failed and has no result; its status says why.")
            case Status.CANCELLED:
                raise Refused("job-cancelled", "The job was cancelled and has no result.")
            case Status.QUEUED | Status.RUNNING:
                raise job_not_finished(self._services, job)


def content_disposition(name: str) -> bytes:
    """A download under this name (RFC 6266): in plain ASCII, and exactly (RFC 8187) where that is not the same."""
    safe = _UNSAFE_IN_NAME.sub("_", name)
    fallback = _UNSAFE_IN_FALLBACK.sub("_", safe)
    text = f'attachment; filename="{fallback}"'
    if fallback != safe:
        text += f"; filename*=UTF-8''{quote(safe.encode('utf-8', 'replace'), safe=_ATTR_CHARS)}"
    return text.encode("ascii")


def _file_name(job: JobRecord, stored: StoredResult) -> str:
    if stored.file_name is not None:
        return stored.file_name
    media_type = stored.content_type.partition(";")[0].strip().lower()
    return job.id + (mimetypes.guess_extension(media_type) or "")


def _content_type(stored: StoredResult) -> bytes:
    is_safe = _MEDIA_TYPE.fullmatch(stored.content_type) is not None
    return stored.content_type.encode("ascii") if is_safe else b"application/octet-stream"
