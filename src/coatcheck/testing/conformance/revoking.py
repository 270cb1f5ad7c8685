"""Revoked tenants: what becomes of their jobs under each policy, in steps that can be broken off anywhere."""

import pytest

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import AddKey, AddTenant, ApiKey, AuditEntry, RestoreTenant, RevokeTenant, Tenant
from coatcheck.store.operating import TenantWork
from coatcheck.store.records import RedriveRefusal, Redriving, Tombstone
from coatcheck.store.revoking import KNOWN_EVERYWHERE_MS, REASON, RevocationsLeft, RevocationStep
from coatcheck.testing.conformance.inbox import Inbox, InboxSuite
from coatcheck.testing.conformance.world import (
    DONE,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    Suite,
    World,
    cancel,
    job_in,
    key_of,
)

OTHER_TENANT = "other"
ENDING = (Revocation.CANCEL, Revocation.ERASE)
HOLDING = (Revocation.FINISH, Revocation.QUARANTINE)
SOON_S = KNOWN_EVERYWHERE_MS / 1000
QUEUE_LIMIT_S = 3600.0


async def revoke(world: World, policy: Revocation, by_operation: dict[str, Revocation] | None = None) -> None:
    """Take away a tenant's right to hand in work."""
    await change(world, AddTenant(Tenant(TENANT, world.now)))
    await change(world, RevokeTenant(TENANT, policy, world.now, by_operation or {}))


async def change(world: World, what: AddTenant | AddKey | RevokeTenant | RestoreTenant) -> None:
    """A change that an operator makes."""
    assert await world.store.change_controls(what, AuditEntry(world.now, "op", "cli", type(what).__name__, TENANT))


async def step(world: World, limit: int = 100) -> RevocationStep:
    """One step of the sweep."""
    return await world.store.carry_out_revocation(TENANT, Policies(world.policies), world.now, limit)


async def _done_at(world: World) -> int | None:
    tenant = await world.store.find_tenant(TENANT)
    assert tenant is not None
    return tenant.revocation_done_at


class TestRevoking(Suite):
    """The sweep, policy by policy."""

    @pytest.mark.parametrize("status", list(Status))
    @pytest.mark.parametrize("policy", list(Revocation))
    async def test_what_becomes_of_a_job(self, world: World, policy: Revocation, status: Status) -> None:
        """Every policy and every status: what the sweep does, and what its client reads then."""
        job = await job_in(world, status)
        other = await world.accept(tenant=OTHER_TENANT)
        world.clock.advance(1)
        await revoke(world, policy)
        done = await step(world)
        found = await world.store.find_job(TENANT, job.id, world.now)
        if policy in HOLDING or (status.is_final and policy is Revocation.CANCEL):
            assert (done, found) == (RevocationStep(), job)
        elif status is Status.RUNNING:
            assert done == RevocationStep(asked=1)
            asked = await world.find(job.id)
            assert (asked.status, asked.cancel_requested, asked.cancel_reason) == (status, True, REASON)
        elif status is Status.QUEUED and policy is Revocation.CANCEL:
            assert done == RevocationStep(cancelled=1)
            ended = await world.find(job.id)
            assert (ended.status, ended.cancel_reason, ended.finished_at) == (Status.CANCELLED, REASON, world.now)
        else:
            assert done == RevocationStep(cancelled=int(status is Status.QUEUED), erased=1)
            assert found == Tombstone(job.id, OPERATION, world.now)
            assert await world.store.read_result(TENANT, job.id, world.now) is None
        assert await world.find(other.id, OTHER_TENANT) == other
        assert await world.store.find_job(OTHER_TENANT, job.id, world.now) is None

    @pytest.mark.parametrize("policy", ENDING)
    async def test_many_jobs_take_bounded_steps_to_the_end(self, world: World, policy: Revocation) -> None:
        for n in range(7):
            await world.accept(operation=(OPERATION, OTHER_OPERATION)[n % 2], delay_s=n % 3)
        running = (await world.claim(slots=2))[:2]
        await revoke(world, policy)
        first = await step(world, limit=2)
        assert first.cancelled + first.asked == 2
        for _ in range(8):
            assert not (await step(world, limit=2)).is_done
        for claim in running:
            await world.finish(claim, DONE)
        world.clock.advance(SOON_S)
        while not (done := await step(world, limit=2)).is_done:
            assert done.touched
        work = await world.store.measure_tenant(TENANT)
        assert work == TenantWork(0, 0, 0 if policy is Revocation.ERASE else 7)
        assert await _done_at(world) == world.now

    @pytest.mark.parametrize("policy", ENDING)
    async def test_what_came_in_at_the_moment_of_it_ends_too(self, world: World, policy: Revocation) -> None:
        await revoke(world, policy)
        assert await step(world) == RevocationStep(), "not done before every process knows of it"
        late = await world.accept()
        world.clock.advance(SOON_S)
        assert (await step(world)).cancelled == 1
        assert (await step(world)).is_done
        later = await world.accept()
        assert TENANT in await world.store.list_revoked(world.now, "", 10)
        assert (await step(world)).cancelled == 1
        for job in (late, later):
            found = await world.store.find_job(TENANT, job.id, world.now)
            assert isinstance(found, Tombstone) or (found is not None and found.status is Status.CANCELLED)

    @pytest.mark.parametrize("policy", HOLDING)
    async def test_done_when_nothing_is_left_to_wait_for(self, world: World, policy: Revocation) -> None:
        claim = await world.start()
        queued = await world.accept()
        await revoke(world, policy)
        world.clock.advance(SOON_S)
        assert not (await step(world)).is_done
        await world.finish(claim, DONE)
        assert (await step(world)).is_done is (policy is Revocation.QUARANTINE)
        if policy is Revocation.FINISH:
            await world.finish(await world.restart(queued.id), DONE)
            assert (await step(world)).is_done
        assert await _done_at(world) == world.now

    async def test_an_operation_can_have_a_policy_of_its_own(self, world: World) -> None:
        kept = await world.accept()
        ended = await world.accept(operation=OTHER_OPERATION)
        await revoke(world, Revocation.FINISH, {OTHER_OPERATION: Revocation.CANCEL})
        assert await step(world) == RevocationStep(cancelled=1)
        assert await world.find(kept.id) == kept
        assert (await world.find(ended.id)).status is Status.CANCELLED
        control = (await world.store.read_controls()).tenants[TENANT]
        assert (control.may_start_in(OPERATION), control.may_start_in(OTHER_OPERATION)) == (True, False)
        assert not control.may_start
        tenant = await world.store.find_tenant(TENANT)
        assert tenant is not None
        assert tenant.by_operation == {OTHER_OPERATION: Revocation.CANCEL}

    async def test_erased_means_keys_as_well(self, world: World) -> None:
        await job_in(world, Status.SUCCEEDED, key=key_of(world))
        await change(world, AddTenant(Tenant(TENANT, world.now)))
        await change(world, AddKey(ApiKey("key-1", TENANT, "d" * 64, ("read",), "", world.now)))
        await change(world, RevokeTenant(TENANT, Revocation.ERASE, world.now))
        await step(world)
        world.clock.advance(SOON_S)
        assert (await step(world)).is_done
        rows = await world.factory.count_rows()
        assert [rows[name] for name in ("job", "payload", "result", "attempt", "idempotency_key")] == [0] * 5
        (key,) = await world.store.list_keys(TENANT)
        assert key.revoked_at == world.now

    async def test_that_it_is_done_is_written_down_once(self, world: World) -> None:
        await revoke(world, Revocation.CANCEL)
        world.clock.advance(SOON_S)
        done_at = world.now
        assert (await step(world)).is_done
        world.clock.advance(1)
        assert (await step(world)).is_done
        entries = [one.entry for one in await world.store.read_audit(10)]
        assert [(entry.at, entry.actor) for entry in entries if entry.action == "tenant.revocation-done"] == [
            (done_at, "coatcheck")
        ]
        assert await world.store.list_revoked(world.now, "", 10) == []
        assert await world.store.list_revoked(done_at, "", 10) == [TENANT]
        assert await world.store.list_revoked(done_at, TENANT, 10) == []

    async def test_nothing_is_done_to_a_tenant_that_is_not_revoked(self, world: World) -> None:
        job = await world.accept()
        assert await step(world) == RevocationStep()
        await revoke(world, Revocation.QUARANTINE)
        await change(world, RestoreTenant(TENANT, world.now))
        world.clock.advance(SOON_S)
        assert await step(world) == RevocationStep()
        assert await world.find(job.id) == job

    @pytest.mark.parametrize("policy", list(Revocation))
    async def test_a_revoked_tenant_gets_no_redrive(self, world: World, policy: Revocation) -> None:
        failed = await job_in(world, Status.FAILED)
        await revoke(world, policy)
        redriving = Redriving(TENANT, failed.id, world.submission().job_id, world.now)
        assert await world.store.redrive_job(redriving) is RedriveRefusal.TENANT_REVOKED
        assert await world.find(failed.id) == failed

    async def test_a_change_is_told(self, telling_world: World) -> None:
        await telling_world.accept()
        await revoke(telling_world, Revocation.CANCEL)
        await step(telling_world)
        told = [entry.type for entry in await telling_world.store.read_outbox(10)]
        assert told == ["coatcheck.job.accepted", "coatcheck.job.cancelled"]

    async def test_one_asked_to_end_before_is_left_alone(self, world: World) -> None:
        claim = await world.start()
        asked = await cancel(world, claim.job, "Ordered twice")
        await revoke(world, Revocation.CANCEL)
        assert await step(world) == RevocationStep()
        assert await world.find(claim.job.id) == asked


class TestWhatIsLeft(Suite):
    """What is left to do, in numbers."""

    async def test_what_is_left_is_counted_until_nothing_is(self, world: World) -> None:
        left = {Revocation.FINISH: 2, Revocation.QUARANTINE: 1, Revocation.CANCEL: 2, Revocation.ERASE: 2}
        owners = ((OPERATION, TENANT), (OTHER_OPERATION, TENANT), (OPERATION, OTHER_TENANT))
        for status in sorted(Status, key=lambda status: status is Status.QUEUED):
            for operation, tenant in owners:
                await job_in(world, status, operation=operation, tenant=tenant)
        assert await world.store.measure_revocations() == RevocationsLeft()
        await change(world, AddTenant(Tenant(TENANT, world.now)))
        for policy, to_end in left.items():
            await change(world, RevokeTenant(TENANT, policy, world.now, {OTHER_OPERATION: Revocation.QUARANTINE}))
            to_erase = 3 if policy is Revocation.ERASE else 0
            assert await world.store.measure_revocations() == RevocationsLeft(1, to_end + 1, to_erase), policy
        assert await step(world) == RevocationStep(cancelled=1, asked=1, erased=4)
        assert await world.store.measure_revocations() == RevocationsLeft(1, 2, 0)

    @pytest.mark.parametrize("policy", ENDING)
    async def test_nothing_is_left_once_it_is_done(self, world: World, policy: Revocation) -> None:
        for _ in range(3):
            await world.accept()
        await revoke(world, policy)
        world.clock.advance(SOON_S)
        counts = []
        while not (await step(world, limit=1)).is_done:
            left = await world.store.measure_revocations()
            assert left.tenants == 1
            counts.append((left.to_end, left.to_erase))
        assert counts == [(2, 0), (1, 0), (0, 0)], "one that was ended is erased in the same step"
        assert await world.store.measure_revocations() == RevocationsLeft()

    async def test_what_is_left_is_counted_so_far_only(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "TENANT_JOBS_COUNTED_MAX", 3)
        for tenant in (TENANT, OTHER_TENANT):
            for _ in range(5):
                await world.accept(tenant=tenant)
            await change(world, AddTenant(Tenant(tenant, world.now)))
            await change(world, RevokeTenant(tenant, Revocation.CANCEL, world.now))
        assert await world.store.measure_revocations() == RevocationsLeft(1, 3, 0)


class TestRevokedInbox(InboxSuite):
    """What was handed in within a caller's transaction, and is not in the queue when the tenant is revoked."""

    @pytest.mark.parametrize("policy", list(Revocation))
    async def test_it_ends_failed_and_says_why(self, world: World, inbox: Inbox, policy: Revocation) -> None:
        job = await inbox.commit(key=key_of(world))
        other = await inbox.commit(tenant=OTHER_TENANT)
        await revoke(world, policy)
        world.clock.advance(SOON_S)
        assert not (await step(world)).is_done
        assert (await world.store.measure_revocations()).to_end == 1
        assert await inbox.promote() == 2
        ended = await world.find(job.id)
        assert ended.error is not None
        assert (ended.status, ended.error.category) == (Status.FAILED, ErrorCategory.TENANT_REVOKED)
        assert [claim.job.id for claim in await world.claim(slots=5)] == [other.id]
        assert (await step(world)).erased == (policy is Revocation.ERASE)
        assert (await step(world)).is_done


class TestQuarantine(Suite):
    """Time in quarantine is not the jobs' fault."""

    async def _held(self, world: World) -> str:
        world.policies[OPERATION] = POLICY
        job = await world.accept()
        world.clock.advance(1)
        await revoke(world, Revocation.QUARANTINE)
        world.clock.advance(QUEUE_LIMIT_S + 1)
        return job.id

    async def _expire(self, world: World) -> int:
        return await world.store.expire_overdue(Policies(world.policies), world.now, 100)

    async def test_it_does_not_count_towards_the_queue_limit(self, world: World) -> None:
        job_id = await self._held(world)
        other = await world.accept(tenant=OTHER_TENANT)
        assert await self._expire(world) == 0
        await change(world, RestoreTenant(TENANT, world.now))
        world.clock.advance(QUEUE_LIMIT_S - 1)
        assert await self._expire(world) == 0
        assert {claim.job.id for claim in await world.claim(slots=2)} == {job_id, other.id}

    async def test_after_it_the_queue_limit_counts_anew(self, world: World) -> None:
        job_id = await self._held(world)
        await change(world, RestoreTenant(TENANT, world.now))
        world.clock.advance(QUEUE_LIMIT_S)
        assert await self._expire(world) == 1
        assert (await world.find(job_id)).status is Status.FAILED

    async def test_a_deadline_goes_on_running(self, world: World) -> None:
        job = await world.accept(deadline_at=world.now + 10_000)
        await revoke(world, Revocation.QUARANTINE)
        world.clock.advance(10)
        assert await self._expire(world) == 1
        assert (await world.find(job.id)).status is Status.FAILED

    async def test_only_operations_that_are_held_are_excused(self, world: World) -> None:
        held = await world.accept()
        finishing = await world.accept(operation=OTHER_OPERATION)
        await revoke(world, Revocation.QUARANTINE, {OTHER_OPERATION: Revocation.FINISH})
        world.clock.advance(QUEUE_LIMIT_S + 1)
        assert await self._expire(world) == 1
        assert (await world.find(held.id)).status is Status.QUEUED
        assert (await world.find(finishing.id)).status is Status.FAILED
