"""One request and its one answer, with what every part of the edge needs of them."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from starlette.types import Receive, Scope, Send

from coatcheck.admission.identity import EVERYBODY, Identity
from coatcheck.app import Operation
from coatcheck.completion.representation import UrlBook
from coatcheck.core import limits
from coatcheck.core.faults import FaultPoint
from coatcheck.http.direct import RawHeaders, take_direct
from coatcheck.http.room import Room

_NOSNIFF = (b"x-content-type-options", b"nosniff")


class ClientGone(Exception):
    """The client closed the connection: nobody is left to answer, and nothing went wrong."""


class Gatekeeper(Protocol):
    """Who let the request in."""

    async def admit_again(self, exchange: "Exchange") -> None:
        """Return if it would be let in now, too.

        Raises:
            Refused: `unauthenticated`.
            StoreUnavailable: that cannot be told now.
        """
        ...


class Exchange:
    """A request on its way to its answer. `route` and `status` are for the metrics; status 0: not answered.

    `rate_fields`: what its answer says of the tenant's rates.
    `controls_version`: of the controls by which the request was let in.
    `has_waited`: the body did not come at once, and operators may have changed anything since.
    `has_stalled`: the body did not come in time, and nobody waits for the rest of it.
    """

    __slots__ = (
        "answers_room",
        "controls_version",
        "correlation_id",
        "direct",
        "fault_point",
        "gatekeeper",
        "has_read_body",
        "has_stalled",
        "has_waited",
        "headers",
        "identity",
        "job_id",
        "method",
        "operation",
        "rate_fields",
        "receive",
        "route",
        "scope",
        "send",
        "status",
        "tenant",
        "urls",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, Sequence[bytes]]) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = headers
        self.method: str = scope["method"]
        self.direct = take_direct(scope)
        self.correlation_id: str
        self.identity: Identity = EVERYBODY
        self.tenant = EVERYBODY.tenant
        self.urls: UrlBook
        self.fault_point: FaultPoint
        self.answers_room: Room
        self.gatekeeper: Gatekeeper
        self.controls_version = 0
        self.operation: Operation | None = None
        self.rate_fields: RawHeaders = ()
        self.job_id = ""
        self.route = "none"
        self.status = 0
        self.has_read_body = False
        self.has_stalled = False
        self.has_waited = False

    @property
    def item(self) -> str:
        """What the path names in a collection: a job or, for operators, a tenant, a key, a limit, an operation."""
        return self.job_id

    @property
    def is_head(self) -> bool:
        return self.method == "HEAD"

    async def answer(self, status: int, content_type: bytes, body: bytes, headers: RawHeaders = ()) -> None:
        """Send the one answer; to HEAD, its headers only.

        Raises:
            Refused: `saturated`: the answer is long, and there is no room for it while its reader takes it.
        """
        length = b"%d" % len(body)
        head = [(b"content-type", content_type), (b"content-length", length), _NOSNIFF, *headers, *self._own_fields()]
        if len(body) > limits.ANSWER_AT_ONCE_BYTES_MAX and not self.is_head:
            with self.answers_room.share(self.tenant) as share:
                share.take(len(body))
                await self._begin(status, head)
                await self._send_in_pieces(body)
            return
        body = b"" if self.is_head else body
        if not self._answered_directly(status, head, body):
            await self._answer_in_messages(status, head, body)

    async def _send_in_pieces(self, body: bytes) -> None:
        """Hand the server no more than it can pass on: what it holds of the rest is counted nowhere."""
        for start in range(0, len(body), limits.ANSWER_PIECE_BYTES):
            end = start + limits.ANSWER_PIECE_BYTES
            self.fault_point("response-half-sent")
            await self.send({"type": "http.response.body", "body": body[start:end], "more_body": end < len(body)})

    def answer_json(self, status: int, body: bytes, headers: RawHeaders = ()) -> Awaitable[None]:
        return self.answer(status, b"application/json", body, headers)

    async def answer_empty(self, status: int, headers: RawHeaders = ()) -> None:
        """Send an answer that has no content, such as 204 or 304."""
        head = [*headers, *self._own_fields()]
        if not self._answered_directly(status, head, b""):
            await self._answer_in_messages(status, head, b"")

    def _answered_directly(self, status: int, head: RawHeaders, body: bytes) -> bool:
        if self.direct is None or not self.direct.answer(status, head, body, self.fault_point):
            return False
        self.status = status
        return True

    async def _answer_in_messages(self, status: int, head: RawHeaders, body: bytes) -> None:
        await self._begin(status, head)
        self.fault_point("response-half-sent")
        await self.send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: RawHeaders) -> None:
        """Send the head of the answer, with the fields that every answer to this request carries."""
        await self._begin(status, [*headers, *self._own_fields()])

    async def _begin(self, status: int, head: RawHeaders) -> None:
        self.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": list(head)})

    def _own_fields(self) -> RawHeaders:
        return (*self.rate_fields, (b"x-correlation-id", self.correlation_id.encode("ascii")))
