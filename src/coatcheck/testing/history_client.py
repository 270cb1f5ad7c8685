"""A client that writes what it did: one line when a call begins and one when it ends, whatever became of it.

It knows the contract and no HTTP library: whoever uses it brings a function that sends one request. A call that got no
whole answer, and one answered with a 5xx that promises nothing, has ended `unknown`.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeAlias

from coatcheck.store.clock import Clock, SystemClock
from coatcheck.testing.history import HistoryWriter, Mark

JsonObject: TypeAlias = dict[str, Any]

ALL_JOBS = "/v1/jobs"
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
PAGE_SIZE = 200
_ASKS_MAX = 5


class Verb(StrEnum):
    """What a call asks for; the `what` of its lines."""

    SUBMIT = "submit"
    READ = "read"
    RESULT = "result"
    ATTEMPTS = "attempts"
    CANCEL = "cancel"
    ERASE = "erase"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `path` carries its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        """The JSON object of its body; empty where there is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class NoReply(Exception):
    """No whole answer came: nobody knows whether the request was heeded."""


Send: TypeAlias = Callable[[Ask], Reply]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A submission that a client may send any number of times: it means the same each time."""

    operation: str
    body: Any = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return json.dumps({} if self.body is None else self.body).encode()


class HistoryClient:
    """Calls a service over `send`, which may be replaced when the service moves. Each thread has its own client.

    A method returns the answer, or None when none came.
    """

    def __init__(self, send: Send, writer: HistoryWriter, tenant: str = "default", clock: Clock | None = None) -> None:
        self.send = send
        self._writer = writer
        self._tenant = tenant
        self._clock = clock or SystemClock()
        self._numbers = itertools.count(1)

    def submit(self, wanted: Wanted) -> Reply | None:
        """Hand in work at the default path of its operation."""
        headers = {"Content-Type": "application/json", **wanted.headers}
        if wanted.key is not None:
            headers["Idempotency-Key"] = wanted.key
        ask = Ask("POST", f"/v1/{wanted.operation}", headers, wanted.content)
        digest = hashlib.sha256(wanted.content).hexdigest()[:16]
        return self._call(Verb.SUBMIT, ask, key=wanted.key, more={"operation": wanted.operation, "digest": digest})

    def read(self, job: JsonObject) -> Reply | None:
        return self._call(Verb.READ, Ask("GET", job["status_url"]), job_id=job["id"])

    def result(self, job: JsonObject) -> Reply | None:
        return self._call(Verb.RESULT, Ask("GET", job["status_url"] + "/result"), job_id=job["id"])

    def attempts(self, job: JsonObject) -> Reply | None:
        return self._call(Verb.ATTEMPTS, Ask("GET", job["status_url"] + "/attempts"), job_id=job["id"])

    def cancel(self, job: JsonObject) -> Reply | None:
        return self._call(Verb.CANCEL, Ask("POST", job["status_url"] + "/cancel"), job_id=job["id"])

    def erase(self, job: JsonObject) -> Reply | None:
        return self._call(Verb.ERASE, Ask("DELETE", job["status_url"]), job_id=job["id"])

    def list_jobs(self, status: str | None = None) -> list[JsonObject]:
        """All pages of the tenant's jobs. Ends early at a page that does not come."""
        jobs: list[JsonObject] = []
        cursor: str | None = ""
        while cursor is not None:
            query = f"?limit={PAGE_SIZE}" + (f"&status={status}" if status else "") + (cursor and f"&cursor={cursor}")
            page = self._call(Verb.LIST, Ask("GET", ALL_JOBS + query), more={"filter": status or ""})
            if page is None or page.status != HTTPStatus.OK:
                return jobs
            jobs.extend(page.json["jobs"])
            cursor = page.json["next_cursor"]
        return jobs

    def dump(self, jobs: Iterable[JsonObject], leftovers: Mapping[str, int] = MappingProxyType({})) -> None:
        """Write what the service says of everything, when it is at rest: the end that the whole history must fit.

        Args:
            jobs: those whose ids are known from elsewhere (`id`, `status_url`); listed ones need not be among them.
            leftovers: what else should be gone at rest, counted by name by whoever can look behind the interface.
        """
        hasty, self.send = self.send, _asking_again(self.send)
        known = {job["id"]: job for job in (*jobs, *self.list_jobs())}
        for status in STATUSES:
            self.list_jobs(status)
        for job in known.values():
            reply = self.read(job)
            if reply is not None and reply.status == HTTPStatus.OK:
                self.attempts(job)
        self.send = hasty
        self._writer.write(Mark.OK, "leftovers", more={"counts": dict(leftovers)})

    def _call(self, verb: Verb, ask: Ask, more: JsonObject | None = None, **fields: Any) -> Reply | None:
        number = next(self._numbers)
        correlation_id = f"{self._writer.who}-{number}"
        headers = {**ask.headers, "X-Correlation-ID": correlation_id}
        more = {"call": number, "correlation_id": correlation_id, **(more or {})}
        self._writer.write(Mark.INVOKE, verb, tenant=self._tenant, more=more, **fields)
        try:
            reply = self.send(Ask(ask.method, ask.path, headers, ask.body))
        except NoReply as error:
            self._writer.write(Mark.UNKNOWN, verb, more={"call": number, "reason": str(error)})
            return None
        told = {"call": number, "wall_ms": self._clock.now(), **_told(reply)}
        self._writer.write(mark_of(reply.status), verb, http_status=reply.status, more=told)
        return reply


def _asking_again(send: Send) -> Send:
    """Asks for what only has to be read until it is answered: a slow machine has not lost a job."""

    def ask_again(ask: Ask) -> Reply:
        for _ in range(_ASKS_MAX - 1):
            with suppress(NoReply):
                reply = send(ask)
                if reply.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    return reply
        return send(ask)

    return ask_again


def mark_of(http_status: int) -> Mark:
    """How a call ended by the status of its answer. Of the 5xx only 503 says that nothing was done."""
    if http_status < HTTPStatus.BAD_REQUEST:
        return Mark.OK
    is_definite = http_status < HTTPStatus.INTERNAL_SERVER_ERROR or http_status == HTTPStatus.SERVICE_UNAVAILABLE
    return Mark.FAIL if is_definite else Mark.UNKNOWN


def _told(reply: Reply) -> JsonObject:
    """What of an answer's body a checker wants to know."""
    body = reply.json
    told: JsonObject = {name: body[name] for name in ("jobs", "attempts") if isinstance(body.get(name), list)}
    if reply.status >= HTTPStatus.BAD_REQUEST:
        told["code"] = body.get("code")
    elif {"id", "status", "version", "status_url"} <= body.keys():
        told["jobs"] = [body]
    return told
