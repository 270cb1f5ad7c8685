"""The whole service in one process, without runners: the test itself is the worker, and everybody writes the history.

One story touches every promise once. A planted bug must show in its history, and without one nothing may.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from coatcheck import App, Job
from coatcheck.completion.events.file import FileChannel
from coatcheck.completion.relay import Relay, RelayParts
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.outcome import Cancelled, Failed, Outcome, ResultBody, Succeeded
from coatcheck.runtime import Runtime
from coatcheck.settings import Settings
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Claim, ClaimRequest, Finishing, Prunable
from coatcheck.testing.checker import Violation, check
from coatcheck.testing.checker_evidence import DUMP, HEALED, Evidence, Kept, Rules, gather, read_events
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.history import HistoryWriter, Mark
from coatcheck.testing.history_client import Ask, HistoryClient, JsonObject, Reply, Wanted
from coatcheck.testing.history_runs import RunLog

LEASE_S = 3.0
JITTER = 0.5
RULES = Rules(kept={"brief": Kept(job_s=60.0)}, concurrency_max={"single": 1}, recovery_s_max=60.0)
OOPS = Failed(ErrorInfo(ErrorCategory.HANDLER_ERROR, "It went wrong."), is_retryable=False)
AGAIN = Failed(ErrorInfo(ErrorCategory.HANDLER_ERROR, "It went wrong."), is_retryable=True)

app = App("checked")


@app.operation("work", max_attempts=2)
async def work(request: dict[str, int], job: Job) -> None:
    """Never run: the world is the worker."""


@app.operation("single", concurrency=1)
async def single(request: dict[str, int], job: Job) -> None:
    """As `work`, one at a time."""


@app.operation("brief", retention="60s")
async def brief(request: dict[str, int], job: Job) -> None:
    """As `work`, forgotten soon."""


@app.operation("spare")
async def spare(request: dict[str, int], job: Job) -> None:
    """As `work`, and nothing else depends on it: bugs may be planted here."""


class TickingClock(ManualClock):
    """A ManualClock on which a millisecond passes whenever somebody asks how much has passed."""

    def monotonic_s(self) -> float:
        self.advance(0.001)
        return super().monotonic_s()


class World:
    """One service, one client, one worker. Close it."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.Runner()
        self._history = folder / "history.jsonl"
        self._events = folder / "events.jsonl"
        self._clock = TickingClock()
        settings = Settings(
            store=f"sqlite:///{folder / 'store.db'}",
            roles=("api",),
            events=f"file:{self._events}",
            lease_s=LEASE_S,
            heartbeat_s=1,
        )
        self._runtime = Runtime(app, settings, clock=self._clock)
        self._store = self._runtime.store
        self._channel = FileChannel(self._events, app.name)
        self._relay = Relay(RelayParts(self._store, self._channel, self._runtime.metrics, self._clock))
        self._loop.run(self._runtime.start())
        self._loop.run(self._channel.open())
        transport = httpx.ASGITransport(self._runtime.asgi(), raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://checked")
        self.client = self.client_named("client")

    def close(self) -> None:
        self._loop.run(self._http.aclose())
        self._loop.run(self._channel.close())
        self._loop.run(self._runtime.stop())
        self._loop.close()

    def client_named(self, who: str) -> HistoryClient:
        writer = HistoryWriter(self._history, who, self._clock)
        return HistoryClient(self._send, writer, clock=self._clock)

    def submit(self, operation: str, number: int, key: str | None = None) -> JsonObject:
        """Hand in work; returns the job, or the problem."""
        reply = self.client.submit(Wanted(operation, {"number": number}, key))
        assert reply is not None
        return reply.json

    def claim(self, slots: int = 10) -> dict[str, tuple[Claim, RunLog]]:
        """Claim what may start and begin its runs, by job id."""
        operations = app.operations.values()
        request = ClaimRequest(
            worker_id="world",
            slots=slots,
            slots_by_operation={operation.name: slots for operation in operations},
            policies={operation.name: operation.policy for operation in operations},
        )
        claims = self._loop.run(self._store.claim_ready(request, self._clock.now())).claims
        return {claim.job.id: (claim, self._run_log(claim)) for claim in claims}

    def finish(self, held: tuple[Claim, RunLog], outcome: Outcome | None = None) -> None:
        """End a run, as succeeded unless told otherwise, and store what came of it if its lease still holds."""
        claim, run = held
        if outcome is None:
            body = b'{"attempt": %d}' % claim.lease.attempt
            outcome = Succeeded(ResultBody("application/json", body))
        if isinstance(outcome, Succeeded):
            run.returned()
        else:
            run.raised(type(outcome).__name__)
        finishing = Finishing(claim.lease, outcome, app.policies.of(claim.job.operation), JITTER)
        try:
            self._loop.run(self._store.finish_attempt(finishing, self._clock.now()))
        except LeaseLost:
            return

    def end_all(self, held: Mapping[str, tuple[Claim, RunLog]]) -> None:
        """End these runs as succeeded."""
        for one in held.values():
            self.finish(one)

    def effect(self, held: tuple[Claim, RunLog], value: bytes) -> None:
        """Have a run record an effect."""
        claim, run = held
        run.asks_effect("once")
        try:
            stands = self._loop.run(self._store.record_effect(claim.lease, "once", value, self._clock.now()))
        except LeaseLost:
            return
        run.has_effect("once", stands.decode())

    def rescue(self) -> None:
        """Let every lease run out, as upkeep sees it."""
        for _ in range(round(LEASE_S) + 2):
            self._clock.advance(1)
            # As upkeep does: a sweep that fails is tried again.
            with contextlib.suppress(Exception):
                self._loop.run(self._store.rescue_leases(app.policies, self._clock.now(), 100))
        self._clock.advance(10)

    def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def heal(self) -> None:
        """Say that from now on nothing is broken."""
        HistoryWriter(self._history, "mender", self._clock).write(Mark.OK, HEALED, more={"wall_ms": self._clock.now()})

    def prune(self) -> None:
        for what in Prunable:
            self._loop.run(self._store.prune_expired(what, self._clock.now(), 100))

    def come_to_rest(self) -> Evidence:
        """Tell every event, dump everything, and put the history together."""
        self._loop.run(self._relay.run_once(1000))
        events = read_events(self._events)
        jobs = [{"id": event["subject"], "status_url": _url(event)} for event in events]
        self.client_named(DUMP).dump(jobs, self._loop.run(self._leftovers()))
        return gather([self._history], self._events)

    async def _leftovers(self) -> dict[str, int]:
        measures = await self._store.measure_queues(self._clock.now())
        return {
            "waiting": sum(measure.ready + measure.scheduled for measure in measures),
            "leases": sum(measure.running for measure in measures),
            "outbox": len(await self._store.read_outbox(10)),
        }

    def _run_log(self, claim: Claim) -> RunLog:
        return RunLog(self._history, claim.job.id, claim.lease.attempt, self._clock)

    def _send(self, ask: Ask) -> Reply:
        async def send() -> httpx.Response:
            return await self._http.request(ask.method, ask.path, headers=dict(ask.headers), content=ask.body)

        answer = self._loop.run(send())
        return Reply(answer.status_code, dict(answer.headers), answer.content)


def tell_story(world: World) -> Sequence[Violation]:
    """Everything that may happen to jobs, once; returns what the checker finds."""
    keyed = world.submit("work", 1, "key")
    world.submit("work", 1, "key")
    world.submit("work", 2, "key")
    world.client.submit(Wanted("work", ["not what the operation wants"]))
    fenced, abandoned, doomed, stopped, unwanted, erased = (world.submit("work", number) for number in range(3, 9))
    gone = world.submit("brief", 9)
    world.submit("spare", 10)
    world.client.cancel(unwanted)
    held = world.claim()
    watched = (keyed, fenced, abandoned, doomed, stopped)
    for job in watched:
        world.client.read(job)
    world.effect(held[keyed["id"]], b'"first"')
    kept = {job["id"] for job in watched[1:]}
    world.end_all({job_id: run for job_id, run in held.items() if job_id not in kept})
    for job in (keyed, erased, gone):
        world.client.read(job)
        world.client.result(job)
    world.client.cancel(stopped)
    world.finish(held[stopped["id"]], Cancelled())
    world.client.erase(erased)
    world.client.read(erased)
    world.client.cancel(keyed)
    _fail_until_it_ends(world, held[doomed["id"]])
    _lose_leases(world, held[fenced["id"]])
    _run_one_by_one(world)
    for job in watched:
        world.client.read(job)
        world.client.attempts(job)
    world.pass_time(61)
    world.prune()
    world.client.read(gone)
    return check(world.come_to_rest(), RULES)


def _fail_until_it_ends(world: World, held: tuple[Claim, RunLog]) -> None:
    """A job that fails as often as it is started, up to four times."""
    job_id = held[0].job.id
    for _ in range(4):
        world.finish(held, AGAIN)
        world.pass_time(10)
        claimed = world.claim()
        if job_id not in claimed:
            return
        held = claimed[job_id]
    world.finish(held)


def _lose_leases(world: World, held: tuple[Claim, RunLog]) -> None:
    """Attempts lose their leases; one comes back while the next one is at work, and can write nothing."""
    world.rescue()
    world.heal()
    again = world.claim()
    next_run = again.pop(held[0].job.id, None)
    world.end_all(again)
    world.effect(held, b'"old"')
    world.finish(held)
    if next_run is not None:
        world.effect(next_run, b'"new"')
        world.finish(next_run, OOPS)


def _run_one_by_one(world: World) -> None:
    """Two jobs of an operation that runs one at a time, each for ten seconds."""
    for number in range(2):
        world.submit("single", number)
    for _ in range(2):
        running = world.claim()
        world.pass_time(10)
        world.end_all(running)


def _url(event: JsonObject) -> str:
    return f"/v1/{event['operation']}/{event['subject']}"
