"""A whole HTTP edge over a real SQLite store, driven in this process; the test plays the worker."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message

from coatcheck.acceptance.acceptance import Acceptance
from coatcheck.admission.buckets import LocalBuckets
from coatcheck.admission.directory import Directory
from coatcheck.admission.identity import DEFAULT_TENANT
from coatcheck.admission.limit_defaults import limit_defaults
from coatcheck.admission.measures import Measures
from coatcheck.admission.parts import make_admission
from coatcheck.app import App
from coatcheck.authenticating import make_authentication
from coatcheck.completion.estimates import Estimates
from coatcheck.completion.start_checks import StartChecks
from coatcheck.completion.watch import JobWatch
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.ids import RANDOM_BITS, make_job_id
from coatcheck.core.job import InstantMs, JobRecord, Progress
from coatcheck.core.outcome import Failed, Outcome, ResultBody, Succeeded
from coatcheck.core.quotas import LimitBook, LimitKey
from coatcheck.http.app import build_asgi
from coatcheck.http.draining import DrainState
from coatcheck.http.services import HttpServices
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store.records import Beat, Claim, ClaimRequest, Finishing, Submission
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.faults import FaultPoints


class Report(BaseModel):
    """What the test operation takes."""

    branch: Annotated[str, Field(pattern=r"^[a-z0-9-]{2,40}$")]
    format: Literal["json", "csv"] = "json"


def make_app() -> App:
    app = App("bookshop")

    @app.operation("reports", path="/reports", payload_bytes_max=2_000)
    async def report(request: Report, job: Any) -> dict[str, int]:
        return {}

    @app.operation("strict", key_required=True, deadline="10m", deadline_max="1h", priorities=(3, 6))
    async def strict(request: dict[str, Any], job: Any) -> None:
        return None

    @app.operation("brief", retention={"succeeded": "1d", "result": "1h", "tombstone": "1d"}, key_window="1d")
    async def brief(request: dict[str, Any], job: Any) -> None:
        return None

    @app.operation("priced", cost={"tokens": _tokens})
    async def priced(request: dict[str, Any], job: Any) -> None:
        return None

    return app


def _tokens(request: dict[str, Any]) -> float:
    if request["tokens"] == "raise":
        raise RuntimeError("no price")
    tokens: float = request["tokens"]
    return tokens


@dataclass
class Site:
    """The edge, its client and its parts."""

    asgi: ASGIApp
    client: httpx.AsyncClient
    services: HttpServices
    store: SqliteStore
    clock: ManualClock
    faults: FaultPoints
    metrics: Metrics
    measures: Measures

    def limit(self, values: Mapping[LimitKey, float | None]) -> None:
        """Let these limits hold instead of those of the settings, as an operator would at run time."""
        self.services.directory.book = LimitBook(values)

    async def submit(self, body: object | None = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post("/reports", json=body or {"branch": "leeds"}, headers=named)

    async def accepted(self) -> str:
        """The URL of a new job."""
        response = await self.submit()
        assert response.status_code == 202
        return str(response.headers["location"])

    async def claim(self) -> Claim:
        policies = self.services.app.policies.by_operation
        request = ClaimRequest("worker-1", 1, dict.fromkeys(policies, 1), policies)
        return (await self.store.claim_ready(request, self.clock.now())).claims[0]

    async def progress(self, claim: Claim, fraction: float) -> None:
        await self.store.extend_leases([Beat(claim.lease, Progress(fraction, "half way"))], self.clock.now())

    async def finish(self, claim: Claim, outcome: Outcome | None = None) -> JobRecord:
        done = outcome or Succeeded(ResultBody("application/json", b'{"titles":\n500}'))
        policy = self.services.app.operations[claim.job.operation].policy
        finished = await self.store.finish_attempt(Finishing(claim.lease, done, policy, 0.5), self.clock.now())
        return finished.job

    async def succeeded(self, result: ResultBody | None = None) -> str:
        url = await self.accepted()
        await self.finish(await self.claim(), None if result is None else Succeeded(result))
        return url

    async def failed(self) -> str:
        url = await self.accepted()
        error = ErrorInfo(ErrorCategory.HANDLER_ERROR, "No such branch", "no-branch", "Traceback: secret")
        await self.finish(await self.claim(), Failed(error, is_retryable=False))
        return url


def submission_of(operation: str, now: InstantMs) -> Submission:
    """Work for any operation, as a build that declares it would accept it."""
    return Submission(
        job_id=make_job_id(now * 1000, secrets.randbits(RANDOM_BITS)),
        tenant=DEFAULT_TENANT,
        operation=operation,
        operation_version="1",
        payload=b"{}",
        created_at=now,
        available_at=now,
        deadline_at=None,
        correlation_id="c",
        priority=5,
        max_attempts=5,
    )


@asynccontextmanager
async def open_site(folder: Path, settings: Mapping[str, Any] | None = None) -> AsyncIterator[Site]:
    clock, faults, metrics, app = ManualClock(), FaultPoints(), Metrics(), make_app()
    store = SqliteStore(SqliteConfig(folder / "jobs.db", app.name), clock, faults)
    await store.open()
    given = Settings(**(settings or {}))
    directory = Directory(store, clock, limit_defaults(given, app))
    admission = make_admission(directory, LocalBuckets(clock), store, clock)
    measures, forecasts = admission.measures, admission.forecasts
    services = HttpServices(
        app=app,
        store=store,
        acceptance=Acceptance(store, clock, admission.gate, faults, directory.current_terms),
        watch=JobWatch(store, clock),
        estimates=Estimates(store, measures, forecasts, clock),
        start_checks=StartChecks(store, clock, metrics),
        metrics=metrics,
        settings=given,
        directory=directory,
        draining=DrainState(),
        rates=admission.rates,
        fault_point=faults,
        authentication=make_authentication(given, store, directory, clock),
    )
    directory.on_change(services.watch.wake_all)
    asgi = build_asgi(services)
    transport = httpx.ASGITransport(app=asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        try:
            yield Site(asgi, client, services, store, clock, faults, metrics, measures)
        finally:
            services.draining.begin()
            await measures.close()
            await store.close()


class Connection:
    """One request by hand: the test sends and receives ASGI messages as a server would."""

    def __init__(self, site: Site, method: str, path: str, headers: Mapping[str, str] | None = None) -> None:
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        scope = {"type": "http", "method": method, "path": path, "root_path": "", "query_string": b"", "headers": raw}
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Message] = asyncio.Queue()
        self.task = asyncio.ensure_future(site.asgi(scope, self._incoming.get, self._outgoing.put))

    def send_body(self, body: bytes, has_more: bool = False) -> None:
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": has_more})

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def next(self) -> Message:
        async with asyncio.timeout(10):
            return await self._outgoing.get()

    async def next_text(self) -> str:
        body: bytes = (await self.next())["body"]
        return body.decode()

    async def end(self) -> None:
        async with asyncio.timeout(10):
            await self.task

    @property
    def is_read(self) -> bool:
        """Whether all that was sent has been taken."""
        return self._incoming.empty()

    @property
    def has_answer(self) -> bool:
        return not self._outgoing.empty()
