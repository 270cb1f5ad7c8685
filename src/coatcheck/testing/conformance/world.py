"""The world of one case: a fresh database, a clock that stands still, and shorthand for the store's verbs."""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pytest_asyncio
from msgspec import structs

from coatcheck.core.backoff import Backoff
from coatcheck.core.errors import ErrorCategory, ErrorInfo
from coatcheck.core.faults import FaultPoint
from coatcheck.core.ids import RANDOM_BITS, IdSequence
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.limits import PRIORITY_DEFAULT
from coatcheck.core.outcome import Failed, Outcome, ResultBody, Succeeded
from coatcheck.core.policy import Policies, Policy, Retention
from coatcheck.core.states import Status
from coatcheck.store.contract import Store
from coatcheck.store.records import (
    Accepted,
    CancelAnswer,
    Claim,
    ClaimRequest,
    Claims,
    Finishing,
    IdempotencyKey,
    Lease,
    Submission,
)
from coatcheck.testing.clock import ManualClock
from coatcheck.testing.faults import FaultPoints

LEASE_S = 15.0
TENANT = "acme"
OPERATION = "reports"
OTHER_OPERATION = "exports"
UNKNOWN_ID = "job_" + "0" * 28

POLICY = Policy(
    backoff=Backoff(first_s=0.0),
    retention=Retention(succeeded_s=1000, failed_s=2000, cancelled_s=3000, result_s=500, tombstone_s=5000),
)

DONE = Succeeded(ResultBody("application/json", b'{"titles":512}'))
BROKEN = Failed(
    ErrorInfo(ErrorCategory.INVALID_INPUT, "There is no such branch.", "no-branch", "KeyError: 'north'"), False
)
FLAKY = Failed(ErrorInfo(ErrorCategory.DEPENDENCY_UNAVAILABLE, "The stock list did not answer."), True)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Where engines may differ, as each declares for itself.

    fairness_slack: claims a waiting tenant may have to let pass beyond one turn of each other tenant.
    has_priority: within a tenant, jobs start by priority and then in the order they came.
    has_fresh_lists: a list shows every change that was committed before it was asked for.
    has_lease_ends: a lease ends at an instant of the store's own clock, so that whoever looks first after it takes the
        job back; otherwise a rescuer acts on what it has itself seen stand still for a lease time.
    has_inbox: work can be handed in within a transaction of the caller's own, and the factory opens such ones.
    """

    fairness_slack: int = 0
    has_priority: bool = True
    has_fresh_lists: bool = True
    has_lease_ends: bool = False
    has_inbox: bool = False


class StoreFactory(Protocol):
    """One empty database of the engine under test. Opened stores are closed by whoever asked for them."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def open_store(self, clock: ManualClock, events: bool, fault_point: FaultPoint) -> Store:
        """Open another store over the same database, with a lease of LEASE_S; `events`: a channel is configured."""
        ...

    async def count_rows(self) -> Mapping[str, int]:
        """The rows of every table but those about the schema itself."""
        ...


class World:
    """One database, its first store, its clock. Verbs use `policies` and the clock's time; stores pass `faults`."""

    def __init__(self, factory: StoreFactory, events: bool) -> None:
        self.store: Store
        self.clock = ManualClock()
        self.faults = FaultPoints()
        self.factory = factory
        self.policies: dict[str, Policy] = {OPERATION: POLICY, OTHER_OPERATION: POLICY}
        self._events = events
        self._ids = IdSequence()
        self._opened: list[Store] = []

    @property
    def now(self) -> InstantMs:
        return self.clock.now()

    def submission(self, **changes: Any) -> Submission:
        """A valid submission made now, with these fields changed. A delay is given as `delay_s`."""
        delay_s = changes.pop("delay_s", 0)
        plain = Submission(
            job_id=self._ids.next_id(self.clock.now_us(), secrets.randbits(RANDOM_BITS)),
            tenant=TENANT,
            operation=OPERATION,
            operation_version="1",
            payload=b'{"branch":"north"}',
            created_at=self.now,
            available_at=self.now + round(delay_s * 1000),
            deadline_at=None,
            priority=PRIORITY_DEFAULT,
            max_attempts=3,
            correlation_id="a-correlation-id",
        )
        return structs.replace(plain, **changes)

    async def accept(self, **changes: Any) -> JobRecord:
        """Hand in work that must be accepted."""
        disposition = await self.store.accept_job(self.submission(**changes))
        assert isinstance(disposition, Accepted), disposition
        return disposition.job

    async def claims(self, slots: int = 1, **changes: Any) -> Claims:
        """Claim for all of `policies` at once. `changes` are fields of the ClaimRequest."""
        request = ClaimRequest("worker-1", slots, dict.fromkeys(self.policies, slots), self.policies)
        return await self.store.claim_ready(replace(request, **changes), self.now)

    async def claim(self, slots: int = 1, **changes: Any) -> list[Claim]:
        return list((await self.claims(slots, **changes)).claims)

    async def start(self, **changes: Any) -> Claim:
        """Hand in work and claim it. Nothing else may be waiting."""
        job = await self.accept(**changes)
        return await self.restart(job.id)

    async def restart(self, job_id: str) -> Claim:
        """Claim a job that waits for its next attempt, the only one waiting."""
        (claim,) = await self.claim()
        assert claim.lease.job_id == claim.job.id == job_id
        return claim

    async def finish(self, claim: Claim, outcome: Outcome, jitter: float = 0.5) -> JobRecord:
        policy = self.policies[claim.job.operation]
        return (await self.store.finish_attempt(Finishing(claim.lease, outcome, policy, jitter), self.now)).job

    async def find(self, job_id: str, tenant: str = TENANT) -> JobRecord:
        """The job as a client reads it. It must be there."""
        job = await self.store.find_job(tenant, job_id, self.now)
        assert isinstance(job, JobRecord), job
        return job

    async def another_store(self) -> Store:
        """A second store over the same database, as another process would open it."""
        store = await self.factory.open_store(self.clock, self._events, self.faults)
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in reversed(self._opened):
            await store.close()
        self._opened.clear()

    async def reopen(self) -> None:
        """Open the first store, or close every store and open one again over the same database."""
        await self.close()
        self.store = await self.another_store()


class Suite:
    """What every class of cases has: a world without channels, and one whose changes are told to others."""

    @pytest_asyncio.fixture
    async def world(self, store_factory: StoreFactory) -> AsyncIterator[World]:
        world = World(store_factory, events=False)
        await world.reopen()
        yield world
        await world.close()

    @pytest_asyncio.fixture
    async def telling_world(self, store_factory: StoreFactory) -> AsyncIterator[World]:
        world = World(store_factory, events=True)
        await world.reopen()
        yield world
        await world.close()


async def rescue(world: World, limit: int = 100) -> int:
    """One turn of the rescue."""
    return await world.store.rescue_leases(Policies(world.policies), world.now, limit)


async def watch(world: World, seconds: float) -> int:
    """Let time pass while the rescue looks every few seconds, as upkeep does; returns how many attempts it ended."""
    rescued = await rescue(world)
    while seconds > 0:
        step_s = min(seconds, LEASE_S / 5)
        world.clock.advance(step_s)
        seconds -= step_s
        rescued += await rescue(world)
    return rescued


async def let_leases_run_out(world: World) -> int:
    """Let a lease time pass in which the rescue sees no heartbeat; returns how many attempts it settled as lost."""
    return await watch(world, LEASE_S)


async def job_in(world: World, status: Status, **changes: Any) -> JobRecord:
    """A job brought to this status the shortest way. Nothing else may be waiting."""
    if status is Status.QUEUED:
        return await world.accept(**changes)
    claim = await world.start(**changes)
    if status is Status.SUCCEEDED:
        return await world.finish(claim, DONE)
    if status is Status.FAILED:
        return await world.finish(claim, BROKEN)
    if status is Status.CANCELLED:
        await cancel(world, claim.job)
        return await world.finish(claim, FLAKY)
    return await world.find(claim.job.id, claim.job.tenant)


async def cancel(world: World, job: JobRecord, reason: str | None = None) -> JobRecord:
    """Ask for the end of a job that exists."""
    answer = await world.store.cancel_job(job.tenant, job.id, reason, Policies(world.policies), world.now)
    assert isinstance(answer, CancelAnswer), answer
    return answer.job


def key_of(world: World, text: str = "retry-1", fingerprint: str = "f" * 64, window_s: int = 86_400) -> IdempotencyKey:
    """An idempotency key whose window ends `window_s` from now."""
    return IdempotencyKey(text, "sha256-canonical-1", fingerprint, world.now + window_s * 1000)


def stale(lease: Lease) -> Lease:
    """A lease that was never given."""
    return structs.replace(lease, token="0" * len(lease.token))
