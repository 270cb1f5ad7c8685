"""One request and its one answer, with what every part of the edge needs of them."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

from coatcheck.app import Operation
from coatcheck.completion.representation import UrlBook
from coatcheck.core.faults import FaultPoint

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]

_NOSNIFF = (b"x-content-type-options", b"nosniff")


class ClientGone(Exception):
    """The client closed the connection: nobody is left to answer, and nothing went wrong."""


class Exchange:
    """A request on its way to its answer. `route` and `status` are for the metrics; status 0: not answered.

    `has_stalled`: the body did not come in time, and nobody waits for the rest of it.
    """

    __slots__ = (
        "correlation_id",
        "fault_point",
        "has_read_body",
        "has_stalled",
        "headers",
        "headers_bytes",
        "job_id",
        "method",
        "operation",
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
        self.headers_bytes = 0
        self.method: str = scope["method"]
        self.correlation_id: str
        self.tenant: str
        self.urls: UrlBook
        self.fault_point: FaultPoint
        self.operation: Operation | None = None
        self.job_id = ""
        self.route = "none"
        self.status = 0
        self.has_read_body = False
        self.has_stalled = False

    @property
    def is_head(self) -> bool:
        return self.method == "HEAD"

    async def answer(self, status: int, content_type: bytes, body: bytes, headers: RawHeaders = ()) -> None:
        """Send the one answer; to HEAD, its headers only."""
        await self.begin(
            status, [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), _NOSNIFF, *headers]
        )
        self.fault_point("response-half-sent")
        await self.send({"type": "http.response.body", "body": b"" if self.is_head else body})

    async def answer_json(self, status: int, body: bytes, headers: RawHeaders = ()) -> None:
        await self.answer(status, b"application/json", body, headers)

    async def answer_empty(self, status: int, headers: RawHeaders = ()) -> None:
        """Send an answer that has no content, such as 204 or 304."""
        await self.begin(status, [*headers])
        await self.send({"type": "http.response.body", "body": b""})

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer, with the correlation id that every answer carries."""
        headers.append((b"x-correlation-id", self.correlation_id.encode("ascii")))
        self.status = status
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
