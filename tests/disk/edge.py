"""An API over one file, driven in this process, and a client that remembers what it was told."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import httpx

from coatcheck import App, Job
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.job import JobRecord
from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.core.states import Status
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.clock import SystemClock
from coatcheck.store.contract import Store
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import ClaimRequest, Finishing
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore

DONE = Succeeded(ResultBody("application/json", b'"done"'))
CLOCK = SystemClock()

app = App("disk")


@app.operation("notes")
async def notes(request: dict[str, Any], job: Job) -> None:
    """Never runs: the tests play the worker."""


@dataclass
class Told:
    """What a client heard. `accepted`: the body of each job that was acknowledged; `finished`: ended for sure."""

    accepted: dict[str, bytes] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    refusals: int = 0

    def copy(self) -> "Told":
        return Told(dict(self.accepted), set(self.finished), self.refusals)


class Client:
    """Hands in work over HTTP and plays the worker on the store below."""

    def __init__(self, http: httpx.AsyncClient, store: Store) -> None:
        self.http = http
        self.store = store
        self.told = Told()

    async def submit(self) -> int:
        """Hand in a note. Returns the status: 202, or 503 in the form the contract gives it."""
        body = b'{"note":"%s"}' % secrets.token_hex(40).encode()
        answer = await self.http.post("/v1/notes", content=body, headers={"content-type": "application/json"})
        if answer.status_code == 202:
            self.told.accepted[answer.json()["id"]] = body
        else:
            assert answer.status_code == 503, answer.text
            assert answer.json()["code"] == "store-unavailable"
            assert "retry-after" in answer.headers
            self.told.refusals += 1
        return answer.status_code

    async def work(self) -> None:
        """Claim one job and finish it, as far as the disk lets us."""
        policies = app.policies.by_operation
        request = ClaimRequest("worker", 1, {"notes": 1}, policies)
        try:
            for claim in (await self.store.claim_ready(request, CLOCK.now())).claims:
                finishing = Finishing(claim.lease, DONE, policies["notes"], 0.5)
                await self.store.finish_attempt(finishing, CLOCK.now())
                self.told.finished.add(claim.job.id)
        except StoreUnavailable:
            self.told.refusals += 1

    async def read_all(self) -> None:
        """Every job that was acknowledged can be read now."""
        for job_id in self.told.accepted:
            answer = await self.http.get(f"/v1/notes/{job_id}")
            assert answer.status_code == 200, answer.text


@asynccontextmanager
async def open_edge(path: Path, fault_point: FaultPoint = no_fault) -> AsyncIterator[Client]:
    """The API alone, over this file."""
    runtime = Runtime(app, Settings(store=f"sqlite:///{path}", roles=("api",)), fault_point=fault_point)
    await runtime.start()
    try:
        transport = httpx.ASGITransport(app=runtime.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
            yield Client(http, runtime.store)
    finally:
        await runtime.stop()


async def broken_promises(path: Path, told: Told) -> list[str]:
    """Open a file as a new process would and compare it with what was told.

    Raises:
        StoreRefused, StoreUnavailable: the file was not opened.
    """
    store = SqliteStore(SqliteConfig(path, app.name))
    await store.open()
    try:
        broken = [fault for job_id in told.accepted if (fault := await _broken(store, job_id, told)) is not None]
    finally:
        await store.close()
    bodies = _bodies(path)
    return broken + [f"{id_}: another body" for id_, body in told.accepted.items() if bodies.get(id_, body) != body]


async def _broken(store: SqliteStore, job_id: str, told: Told) -> str | None:
    job = await store.find_job("default", job_id, CLOCK.now())
    if not isinstance(job, JobRecord):
        return f"{job_id}: lost"
    if job_id in told.finished and job.status is not Status.SUCCEEDED:
        return f"{job_id}: finished, and now {job.status}"
    return None


def _bodies(path: Path) -> dict[str, bytes]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows: list[tuple[Any, ...]] = connection.execute("SELECT job_id, body FROM payload").fetchall()
    connection.close()
    return dict(rows)
