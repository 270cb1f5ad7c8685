"""Requests of a story: over the real ASGI app of some node, each noted as a call of the one history format."""

import asyncio
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from starlette.types import Message

from coatcheck.testing.checker_evidence import Call
from coatcheck.testing.history import Mark
from coatcheck.testing.history_client import ALL_JOBS, PAGE_SIZE, STATUSES, Verb, mark_of

from .sim_node import Node
from .sim_record import Record

PATIENCE_S = 20.0
TENANT = "default"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, with what the history wants to know of it."""

    verb: Verb
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    operation: str | None = None
    job_id: str | None = None
    listed_status: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; status 0: none came, and nobody knows whether anything happened."""

    status: int
    body: Any


UNKNOWN = Answer(0, None)


class Caller:
    """Somebody who calls whichever node is there."""

    def __init__(self, who: str, nodes: Sequence[Node], record: Record, random: Random) -> None:
        self._who = who
        self._nodes = nodes
        self._record = record
        self._random = random
        self._numbers = itertools.count(1)

    async def call(self, ask: Ask) -> Answer:
        """The answer of one node, or UNKNOWN. Nothing is sent where nobody listens."""
        living = [node for node in self._nodes if node.asgi is not None]
        if not living:
            return UNKNOWN
        correlation_id = f"{self._who}-{next(self._numbers)}"
        content = b"" if ask.body is None else json.dumps(ask.body).encode()
        noted = Call(
            who=self._who,
            verb=ask.verb,
            tenant=TENANT,
            began_us=self._record.now_us(),
            correlation_id=correlation_id,
            operation=ask.operation,
            job_id=ask.job_id,
            key=ask.headers.get("idempotency-key"),
            digest=hashlib.sha256(content).hexdigest(),
            listed_status=ask.listed_status,
        )
        headers = {**ask.headers, "content-type": "application/json", "x-correlation-id": correlation_id}
        answer = await _Request(self._random.choice(living), ask, headers, content).answer()
        self._record.calls.append(noted if answer is UNKNOWN else self._ended(noted, answer))
        self._record.tell(f"{correlation_id} {ask.method} {ask.path} -> {answer.status}")
        return answer

    def _ended(self, noted: Call, answer: Answer) -> Call:
        body = answer.body if isinstance(answer.body, dict) else {}
        is_job = answer.status < 400 and "status_url" in body
        return replace(
            noted,
            mark=mark_of(answer.status),
            ended_us=self._record.now_us(),
            wall_ms=self._record.clock.now(),
            http_status=answer.status,
            code=body.get("code"),
            jobs=[body] if is_job else body.get("jobs", ()),
            attempts=body.get("attempts", ()),
        )

    async def dump(self) -> None:
        """Everything the service says at rest."""
        listed = await self._list("")
        for status in STATUSES:
            await self._list(status)
        paths = {job["id"]: job["status_url"] for job in listed} | self._known_paths()
        for job_id, path in sorted(paths.items()):
            found = await self._surely(Ask(Verb.READ, "GET", path, job_id=job_id))
            if found.status == 200:
                await self._surely(Ask(Verb.ATTEMPTS, "GET", f"{path}/attempts", job_id=job_id))

    def _known_paths(self) -> dict[str, str]:
        shown = [job for call in self._record.calls if call.mark is Mark.OK for job in call.jobs]
        return {job["id"]: job["status_url"] for job in shown}

    async def _list(self, status: str) -> list[dict[str, Any]]:
        path = f"{ALL_JOBS}?limit={PAGE_SIZE}" + (f"&status={status}" if status else "")
        answer = await self._surely(Ask(Verb.LIST, "GET", path, listed_status=status))
        jobs: list[dict[str, Any]] = answer.body["jobs"]
        return jobs

    async def _surely(self, ask: Ask) -> Answer:
        answer = await self.call(ask)
        if answer is UNKNOWN:
            self._record.blame(f"at rest, {ask.path} was not answered")
        return answer


class _Request:
    """One request to one node, in this process of the machine but over the real ASGI app."""

    def __init__(self, node: Node, ask: Ask, headers: Mapping[str, str], body: bytes) -> None:
        path, _, query = ask.path.partition("?")
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._scope = {
            "type": "http",
            "method": ask.method,
            "path": path,
            "root_path": "",
            "query_string": query.encode(),
            "headers": [*raw, (b"content-length", b"%d" % len(body))],
        }
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._node = node
        self._head: Message = {}
        self._parts: list[bytes] = []
        self._ended = asyncio.Event()

    async def answer(self) -> Answer:
        """The answer, or UNKNOWN where none came in time."""
        asgi = self._node.asgi
        assert asgi is not None
        self._node.process.run(_served(asgi, self._scope, self._incoming.get, self._send))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._ended.wait()
        except TimeoutError:
            self._incoming.put_nowait({"type": "http.disconnect"})
            return UNKNOWN
        body = b"".join(self._parts)
        return Answer(self._head["status"], json.loads(body) if body else None)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        self._parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            self._ended.set()


async def _served(asgi: Any, scope: Any, receive: Any, send: Any) -> None:
    await asgi(scope, receive, send)
