"""A store with a row of every kind and in every state, and all that can be read of one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import DEFAULT_WINDOW_S, window_of
from coatcheck.core.job import Progress
from coatcheck.core.outcome import Lost, ResultBody, Succeeded
from coatcheck.core.states import Status
from coatcheck.core.tenancy import LimitOverride, OperationMode, Revocation
from coatcheck.store.controls import (
    AddKey,
    AddTenant,
    ApiKey,
    AuditEntry,
    ControlChange,
    RevokeKey,
    RevokeTenant,
    SetLimit,
    SetMode,
    SetTenant,
    Tenant,
)
from coatcheck.store.records import Beat, Claim, JobQuery, Redriving, Spending, Submission
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    World,
    cancel,
    job_in,
    key_of,
)

TENANTS = (TENANT, "zenith", "Ünïversal")
LARGE = Succeeded(ResultBody("application/json", b'"' + b"x" * 200_000 + b'"'))
FILE = Succeeded(ResultBody("application/pdf", bytes(range(256)) * 9, "rapport d'été.pdf"))


class Filled:
    """What is in the store: the ids of its jobs by tenant, the attempt that runs, and submissions to repeat."""

    def __init__(self) -> None:
        self.job_ids: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
        self.running: Claim
        self.repeats: list[Submission] = []


async def fill(world: World) -> Filled:
    """Make one of everything. Some time passes meanwhile."""
    filled = Filled()
    for tenant in TENANTS:
        world.clock.advance(1.25)
        filled.job_ids[tenant] += await _ended(world, tenant)
    filled.repeats = await _with_keys(world)
    filled.job_ids[TENANT] += [one.job_id for one in filled.repeats[:1]]
    filled.running = await _running(world)
    filled.job_ids[TENANT].append(filled.running.job.id)
    for make in (_tried_before, _waiting):
        for tenant in TENANTS:
            filled.job_ids[tenant] += await make(world, tenant)
    await _served(world)
    await _controlled(world)
    return filled


async def _ended(world: World, tenant: str) -> list[str]:
    """Jobs in every final state, with each form of result, attempts, effects, and what an erased one leaves."""
    jobs = [await job_in(world, status, tenant=tenant) for status in Status if status.is_final]
    for outcome in (LARGE, FILE):
        claim = await world.start(tenant=tenant, deadline_at=world.now + 60_000)
        await world.store.record_effect(claim.lease, "mail", b"sent \x00\xff", world.now)
        await world.store.spend(Spending(claim.lease, 1, "calls", 2_500_000, window_of(world.now, DEFAULT_WINDOW_S)))
        jobs.append(await world.finish(claim, outcome))
    claim = await world.start(tenant=tenant, max_attempts=2)
    await world.finish(claim, FLAKY)
    world.clock.advance(0.5)
    dead = await world.finish(await world.restart(claim.job.id), FLAKY)
    await world.store.redrive_job(Redriving(tenant, dead.id, world.submission().job_id, world.now))
    (again,) = await world.claim()
    jobs += [dead, await world.finish(again, BROKEN)]
    erased = await job_in(world, Status.SUCCEEDED, tenant=tenant)
    await world.store.erase_job(tenant, erased.id, world.now)
    return [job.id for job in (*jobs, erased)]


async def _with_keys(world: World) -> list[Submission]:
    """Two submissions with keys: the job of the first is done, that of the second erased."""
    submissions = [world.submission(key=key_of(world, f"retry-{number}")) for number in (1, 2)]
    for submission in submissions:
        await world.store.accept_job(submission)
        await world.finish(await world.restart(submission.job_id), DONE)
    await world.store.erase_job(TENANT, submissions[1].job_id, world.now)
    return submissions


async def _running(world: World) -> Claim:
    """An attempt with progress, which was asked to stop."""
    claim = await world.start(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    await world.store.extend_leases([Beat(claim.lease, Progress(0.25, "a quarter"))], world.now)
    await cancel(world, claim.job, "no longer needed")
    return claim


async def _tried_before(world: World, tenant: str) -> list[str]:
    """A job with an attempt behind it, that waits out its backoff."""
    world.policies[OPERATION] = replace(POLICY, backoff=Backoff(first_s=60.0))
    job = await world.finish(await world.start(tenant=tenant), FLAKY)
    world.policies[OPERATION] = POLICY
    return [job.id]


async def _waiting(world: World, tenant: str) -> list[str]:
    """Jobs that wait for their time and for their turn, and one that waits no more."""
    jobs = [
        await world.accept(tenant=tenant, delay_s=30),
        await world.accept(tenant=tenant, deadline_at=world.now + 3_600_000, payload='{"branch":"Łódź"}'.encode()),
        await world.accept(tenant=tenant, priority=9),
        await world.accept(tenant=tenant, priority=1),
        await world.accept(tenant=tenant, operation=OTHER_OPERATION),
        await world.accept(tenant=tenant),
    ]
    cancelled = await cancel(world, await world.accept(tenant=tenant), "a mistake")
    return [*(job.id for job in jobs), cancelled.id]


async def _served(world: World) -> None:
    """Some tenants are served, so that the turns differ; the last job takes its runner with it."""
    for outcome in (DONE, BROKEN, DONE, Lost(is_blamed=False, is_suspect=True)):
        (claim,) = await world.claim(slots_by_operation={OPERATION: 1})
        await world.finish(claim, outcome)


async def _controlled(world: World) -> None:
    """Tenants of every sort, with keys, limits and modes."""
    now = world.now
    changes: list[ControlChange] = [
        *(AddTenant(Tenant(name, now)) for name in (*TENANTS, "a tenant without jobs")),
        SetTenant(TENANT, weight=2.5),
        SetTenant("zenith", is_paused=True),
        AddKey(
            ApiKey(
                "key-1", TENANT, "d" * 64, ("read", "submit"), "Été", now, expires_at=now + 90_000, lifetime_ms=90_000
            )
        ),
        AddKey(ApiKey("key-2", TENANT, "e" * 64, (), "", now)),
        RevokeKey("key-2", now + 1),
        SetLimit(LimitOverride("queued", TENANT, "", 0.0)),
        SetLimit(LimitOverride("queued", "*", OPERATION, None)),
        SetMode(OTHER_OPERATION, OperationMode.DRAINING),
        RevokeTenant("Ünïversal", Revocation.QUARANTINE, now),
    ]
    for change in changes:
        entry = AuditEntry(now, "cli:ada", "a-host", type(change).__name__, "a target", TENANT, {"to": "Łódź"})
        assert await world.store.change_controls(change, entry)


async def picture(world: World, filled: Filled) -> Mapping[str, Any]:
    """Everything that the verbs for reading say of the store."""
    store, now = world.store, world.now
    seen: dict[str, Any] = {"queues": await store.measure_queues(now), "outbox": await store.read_outbox(1_000)}
    controls = await store.read_controls()
    seen["controls"] = (controls.tenants, controls.modes, sorted(controls.overrides, key=repr))
    seen["tenants"] = await store.list_tenants(100)
    seen["audit"] = await store.read_audit(100)
    for tenant, job_ids in filled.job_ids.items():
        seen[f"{tenant} keys"] = await store.list_keys(tenant)
        for status in (None, *Status):
            query = JobQuery(tenant, 200, status=status)
            seen[f"{tenant} {status}"] = await store.list_jobs(query, now)
        for job_id in job_ids:
            seen[job_id] = (
                await store.find_job(tenant, job_id, now),
                await store.read_result(tenant, job_id, now),
                await store.list_attempts(tenant, job_id),
            )
    return seen


async def order_of_claims(world: World) -> list[tuple[str, bytes, bool]]:
    """Claim until nothing is left, one by one, with the time of those that waited for it come."""
    world.clock.advance(120)
    claimed = []
    await world.store.promote_due(world.now, 1_000)
    while claims := await world.claim():
        claimed += [(claim.job.id, claim.payload, claim.is_alone) for claim in claims]
        await world.store.promote_due(world.now, 1_000)
    return claimed
