"""A job as server-sent events: one for each version seen, until it is done, the client leaves or the server drains."""

import asyncio
import re
from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.job import JobRecord
from coatcheck.core.problems import Refused
from coatcheck.http.disconnect import while_connected
from coatcheck.http.exchange import Exchange
from coatcheck.http.job_answers import CACHE_CONTROL, VARY, job_body
from coatcheck.http.refusals import saturated
from coatcheck.http.services import HttpServices
from coatcheck.http.standing import Standing
from coatcheck.store.errors import StoreUnavailable

_EVENT_ID = re.compile(rb"[0-9]{1,18}")
_COMMENT = b":\n\n"
_RETRY = b"retry: %d\n\n" % limits.STREAM_RETRY_MS
# Not to the standard, but to the line readers of many clients, in Python for one: in JSON they can stand as escapes.
_LINE_ENDS_TO_SOME = tuple((char.encode(), b"\\u%04x" % ord(char)) for char in "\x85\u2028\u2029")
_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"x-content-type-options", b"nosniff"),
    # Asks proxies of nginx's kind to pass each event on at once.
    (b"x-accel-buffering", b"no"),
    CACHE_CONTROL,
    VARY,
)


class Streams:
    """All open streams of this process, at most STREAMS_MAX of them."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._count = 0

    async def serve(self, exchange: Exchange, job: JobRecord) -> None:
        """Stream the job's versions after Last-Event-ID.

        Raises:
            Refused: `saturated`.
            ClientGone: the client left.
        """
        last_version = _last_version(exchange.headers.get(b"last-event-id", ()))
        if job.status.is_final and job.version <= last_version:
            await exchange.answer_empty(204, [CACHE_CONTROL, VARY])
            return
        if self._count >= limits.STREAMS_MAX:
            raise saturated(f"{limits.STREAMS_MAX} live streams are open, as many as this server holds.")
        self._count += 1
        try:
            await self._serve(exchange, job, last_version)
        finally:
            self._count -= 1

    async def _serve(self, exchange: Exchange, job: JobRecord, last_version: int) -> None:
        await exchange.begin(200, list(_HEADERS))
        if not exchange.is_head and not await while_connected(
            exchange.receive, self._send_versions(exchange, job, last_version)
        ):
            # The reader is stuck: without an end to the answer the server closes the connection.
            return
        await exchange.send({"type": "http.response.body", "body": b""})

    async def _send_versions(self, exchange: Exchange, job: JobRecord, last_version: int) -> bool:
        """Send until there is nothing more to send. False: the client does not read what it is sent."""
        try:
            await self._send(exchange, _RETRY)
            before: JobRecord | None = None
            standing = Standing(self._services, exchange)
            while True:
                if job.version > last_version:
                    await self._send(exchange, _event(before, job, job_body(exchange, job)))
                    before, last_version = job, job.version
                if job.status.is_final or self._is_ending:
                    return True
                newer = await self._next(standing, job.id, last_version)
                if newer is None:
                    return True
                exchange.fault_point("response-half-sent")
                if newer.version <= last_version and not newer.status.is_final and not self._is_ending:
                    await self._send(exchange, _COMMENT)
                job = newer
        except TimeoutError:
            return False

    @property
    def _is_ending(self) -> bool:
        return self._services.draining.has_begun or self._services.watch.is_stopped

    async def _next(self, standing: Standing, job_id: str, last_version: int) -> JobRecord | None:
        """The job at a newer version, or as it stands when a comment is due. None: it cannot be read any more."""
        try:
            found = await standing.wait(
                job_id,
                lambda job: job.version > last_version or job.status.is_final,
                self._services.settings.stream_comment_s,
            )
        except (StoreUnavailable, Refused):
            return None
        return found if isinstance(found, JobRecord) else None

    async def _send(self, exchange: Exchange, text: bytes) -> None:
        async with asyncio.timeout(limits.STREAM_SEND_S_MAX):
            await exchange.send({"type": "http.response.body", "body": text, "more_body": True})


def _last_version(values: Sequence[bytes]) -> int:
    """The version a client saw last; 0 where it says none, or none that could be one."""
    return int(values[0]) if len(values) == 1 and _EVENT_ID.fullmatch(values[0]) else 0


def _event(before: JobRecord | None, job: JobRecord, body: bytes) -> bytes:
    # Line ends in JSON are white space, and in an event the end of the field.
    data = body.replace(b"\r", b" ").replace(b"\n", b" ")
    for character, escaped in _LINE_ENDS_TO_SOME:
        data = data.replace(character, escaped)
    return b"event: %s\nid: %d\ndata: %s\n\n" % (_kind(before, job), job.version, data)


def _kind(before: JobRecord | None, job: JobRecord) -> bytes:
    if job.status.is_final:
        return b"done"
    if before is None or before.progress == job.progress:
        return b"status"
    is_same = before.status is job.status and before.attempt == job.attempt
    return b"progress" if is_same and before.cancel_requested == job.cancel_requested else b"status"
