"""The sweep that carries out revocations, and runs over many dead letters at a rate."""

from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.core.tenancy import Revocation
from coatcheck.observe.metrics import Metrics
from coatcheck.operators.actor import Actor
from coatcheck.operators.dead_letters import DeadLetters, Redriven
from coatcheck.operators.jobs import Jobs
from coatcheck.store.controls import AddTenant, AuditEntry, RevokeTenant, Tenant
from coatcheck.store.operating import JobFilter, JobSurvey
from coatcheck.testing.conformance.revoking import SOON_S
from coatcheck.testing.conformance.world import BROKEN, World, job_in
from coatcheck.upkeep.gauges import RevocationGauges
from coatcheck.upkeep.revocations import WATCHED_EVERY_S, WATCHED_MS, RevocationSweep

BY = Actor("op", "test")


async def revoke(world: World, *tenants: str, policy: Revocation = Revocation.CANCEL) -> None:
    for name in tenants:
        for change in (AddTenant(Tenant(name, world.now)), RevokeTenant(name, policy, world.now)):
            await world.store.change_controls(change, AuditEntry(world.now, "op", "cli", "change", name, name))


def sweep_of(world: World, metrics: Metrics | None = None) -> RevocationSweep:
    return RevocationSweep(world.store, Policies(world.policies), metrics or Metrics(), world.clock)


async def test_all_revoked_tenants_have_their_turn(world: World) -> None:
    metrics = Metrics()
    sweep = sweep_of(world, metrics)
    for n in range(6):
        await world.accept(tenant=f"tenant-{n % 3}")
    await revoke(world, "tenant-0", "tenant-1")
    counts = [await sweep.run_once(2) for _ in range(3)]
    assert sum(counts) == 4
    assert max(counts) <= 3
    assert metrics.read("revoked_jobs", what="cancelled") == 4
    assert len(await world.claim(slots=9)) == 2


async def test_gauges_show_what_is_left_and_return_to_zero(world: World) -> None:
    metrics = Metrics()
    gauges = RevocationGauges(world.store, metrics)
    await job_in(world, Status.SUCCEEDED, tenant="acme")
    await world.accept(tenant="acme")
    await revoke(world, "acme", policy=Revocation.ERASE)

    async def shown() -> list[float]:
        assert await gauges.run_once(10) == 0
        left = [metrics.read("revocation_jobs_left", what=what) for what in ("end", "erase")]
        return [metrics.read("revocations_under_way"), *left]

    assert await shown() == [1, 1, 1]
    world.clock.advance(SOON_S)
    sweep = sweep_of(world, metrics)
    while await sweep.run_once(10):
        pass
    assert await shown() == [0, 0, 0]


async def test_what_is_done_is_looked_at_now_and_then_for_a_day(world: World) -> None:
    sweep = sweep_of(world)
    await revoke(world, "acme")
    world.clock.advance(SOON_S)
    assert await sweep.run_once(10) == 0
    tenant = await world.store.find_tenant("acme")
    assert tenant is not None
    assert tenant.revocation_done_at == world.now
    late = await world.accept()
    assert await sweep.run_once(10) == 0, "not at every look"
    world.clock.advance(WATCHED_EVERY_S)
    assert await sweep.run_once(10) == 1
    assert (await world.find(late.id)).status is Status.CANCELLED
    world.clock.advance(WATCHED_MS / 1000)
    await world.accept()
    assert await sweep.run_once(10) == 0


async def test_many_are_redriven_at_a_rate(world: World) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(round(seconds, 3))
        world.clock.advance(seconds)

    for _ in range(7):
        await job_in(world, Status.FAILED)
    world.clock.advance(1)
    jobs = Jobs(world.store, Policies(world.policies))
    room = DeadLetters(world.store, jobs, None, pause)
    seen: list[Redriven] = []
    wanted = JobFilter(created_until=world.now)
    done = await room.redrive_many(JobSurvey(wanted, 100), 2.0, BY, seen.append)
    assert (done.redriven, done.left, done.position) == (7, 0, None)
    assert pauses == [1.0, 1.0, 1.0]
    assert [one.redriven for one in seen] == [2, 4, 6, 7]
    assert (await room.redrive_many(JobSurvey(wanted, 100), 2.0, BY)).redriven == 0


async def test_a_run_that_is_broken_off_goes_on_where_it_was(world: World) -> None:
    class Stopped(Exception):
        pass

    async def stop(seconds: float) -> None:
        raise Stopped

    for _ in range(5):
        await job_in(world, Status.FAILED)
    world.clock.advance(1)
    jobs = Jobs(world.store, Policies(world.policies))
    survey = JobSurvey(JobFilter(created_until=world.now), 100)
    try:
        await DeadLetters(world.store, jobs, None, stop).redrive_many(survey, 2.0, BY)
    except Stopped:
        assert len(await world.claim(slots=9)) == 2
    done = await DeadLetters(world.store, jobs, None).redrive_many(survey, 1_000.0, BY)
    assert done.redriven == 3
    redriven = [one.entry.target for one in await world.store.read_audit(20)]
    assert len(redriven) == len(set(redriven)) == 5


async def test_what_fails_again_meanwhile_is_left(world: World) -> None:
    await job_in(world, Status.FAILED)
    world.clock.advance(1)
    room = DeadLetters(world.store, Jobs(world.store, Policies(world.policies)), None)
    survey = JobSurvey(JobFilter(created_until=world.now), 100)
    assert (await room.redrive_many(survey, 1_000.0, BY)).redriven == 1
    (claim,) = await world.claim()
    await world.finish(claim, BROKEN)
    assert (await room.redrive_many(survey, 1_000.0, BY)).redriven == 0
