"""What operators see of jobs: all tenants', by filters, page by page; and what they do to them is written down."""

from typing import Any

import pytest
from msgspec import structs

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.controls import AuditEntry
from coatcheck.store.operating import JobFilter, JobSurvey, TenantWork
from coatcheck.store.records import CancelAnswer, CancelDisposition, RedriveRefusal, Redriving, Tombstone
from coatcheck.testing.conformance.world import (
    DONE,
    OPERATION,
    OTHER_OPERATION,
    POLICY,
    TENANT,
    UNKNOWN_ID,
    Suite,
    World,
    job_in,
)

OTHER_TENANT = "other"


def entry_of(world: World, action: str, job_id: str, tenant: str = TENANT) -> AuditEntry:
    """What an operator does now."""
    return AuditEntry(world.now, "op", "cli", action, job_id, tenant)


async def survey(world: World, limit: int = 100, **wanted: Any) -> list[str]:
    """The ids of all jobs that are meant, read page by page."""
    return await _ids(world, JobFilter(**wanted), limit, is_onward=False)


async def dead_letters_onward(world: World, limit: int = 100, **wanted: Any) -> list[str]:
    """The ids of dead letters, oldest first."""
    return await _ids(world, JobFilter(is_dead_letter=True, **wanted), limit, is_onward=True)


async def _ids(world: World, wanted: JobFilter, limit: int, *, is_onward: bool) -> list[str]:
    verb = world.store.next_dead_letters if is_onward else world.store.survey_jobs
    found: list[str] = []
    position: str | None = None
    while True:
        page = await verb(JobSurvey(wanted, limit, position), world.now)
        assert len(page.jobs) <= limit
        found += [job.id for job in page.jobs]
        if page.position is None:
            return found
        assert position is None or (page.position > position) == is_onward
        position = page.position


async def _jobs(world: World) -> dict[Status, JobRecord]:
    """One job in each status, oldest first, made a second apart."""
    jobs = {}
    for status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.RUNNING, Status.QUEUED):
        jobs[status] = await job_in(world, status)
        world.clock.advance(1)
    return jobs


async def _audit(world: World) -> list[tuple[InstantMs, str, str]]:
    return [(one.entry.at, one.entry.action, one.entry.target) for one in await world.store.read_audit(100)]


class TestSurveys(Suite):
    """Lists over all tenants."""

    async def test_newest_first_whoever_handed_it_in(self, world: World) -> None:
        jobs = [await world.accept(tenant=f"tenant-{n % 3}") for n in range(7)]
        expected = [job.id for job in reversed(jobs)]
        for limit in (1, 2, 7, 8):
            assert await survey(world, limit) == expected
        page = await world.store.survey_jobs(JobSurvey(JobFilter(), 100), world.now)
        assert (list(page.jobs), page.position) == (jobs[::-1], None)

    @pytest.mark.parametrize("tenant", [None, TENANT])
    @pytest.mark.parametrize("operation", [None, OPERATION])
    async def test_by_status(self, world: World, tenant: str | None, operation: str | None) -> None:
        jobs = await _jobs(world)
        await world.accept(tenant=OTHER_TENANT, operation=OTHER_OPERATION)
        for status, job in jobs.items():
            found = await survey(world, 2, tenant=tenant, operation=operation, status=status)
            others = (
                await survey(world, tenant=OTHER_TENANT, status=status) if (tenant, operation) == (None, None) else []
            )
            assert found == [*others, job.id]

    async def test_by_tenant_and_operation(self, world: World) -> None:
        named = [(tenant, operation) for tenant in (TENANT, OTHER_TENANT) for operation in (OPERATION, OTHER_OPERATION)]
        jobs = [(await world.accept(tenant=tenant, operation=operation)).id for tenant, operation in [*named, *named]]
        for n, (tenant, operation) in enumerate(named):
            assert await survey(world, 1, tenant=tenant, operation=operation) == [jobs[n + 4], jobs[n]]
        assert await survey(world, 1, tenant=TENANT) == [jobs[5], jobs[4], jobs[1], jobs[0]]
        assert await survey(world, 1, operation=OPERATION) == [jobs[6], jobs[4], jobs[2], jobs[0]]
        assert await survey(world, tenant="nobody") == await survey(world, operation="nothing") == []
        assert await survey(world, tenant="no\0body") == []

    async def test_by_category(self, world: World) -> None:
        jobs = await _jobs(world)
        assert await survey(world, category=ErrorCategory.INVALID_INPUT) == [jobs[Status.FAILED].id]
        assert await survey(world, tenant=TENANT, category=ErrorCategory.INVALID_INPUT) == [jobs[Status.FAILED].id]
        assert await survey(world, category=ErrorCategory.TIMEOUT) == []

    async def test_by_time(self, world: World) -> None:
        start = world.now
        jobs = list((await _jobs(world)).values())
        for since, until in ((0, 5), (1, 4), (2, 2), (0, 1)):
            found = await survey(world, 2, created_since=start + since * 1000, created_until=start + until * 1000)
            assert found == [job.id for job in reversed(jobs[since:until])]
        ended = jobs[:3]
        assert await survey(world, finished_since=start) == [job.id for job in reversed(ended)]
        assert await survey(world, finished_since=start + 1000, finished_until=start + 2000) == [jobs[1].id]
        assert await survey(world, tenant=TENANT, finished_until=start + 1000) == [jobs[0].id]

    async def test_what_expired_is_not_listed(self, world: World) -> None:
        job = await job_in(world, Status.FAILED)
        world.clock.advance(POLICY.retention.failed_s)
        assert (
            await survey(world) == await survey(world, tenant=TENANT) == await survey(world, is_dead_letter=True) == []
        )
        assert await dead_letters_onward(world) == []
        assert isinstance(await world.store.find_any_job(job.id, world.now), Tombstone)

    async def test_a_page_looks_at_so_many_jobs_only(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "JOBS_SURVEYED_MAX", 3)
        rare = await job_in(world, Status.FAILED)
        for _ in range(10):
            await world.accept()
            await world.accept(operation=OTHER_OPERATION)
        page = await world.store.survey_jobs(JobSurvey(JobFilter(status=Status.FAILED), 5), world.now)
        assert list(page.jobs) == []
        assert page.position is not None
        for wanted in ({"status": Status.FAILED}, {"tenant": TENANT, "finished_until": world.now + 1}):
            assert await survey(world, 5, **wanted) == [rare.id]
        assert len(await survey(world, 2, tenant=TENANT)) == 21


class TestDeadLetters(Suite):
    """Failed jobs that wait for somebody to look at them."""

    async def _fail(self, world: World, **changes: object) -> JobRecord:
        return await job_in(world, Status.FAILED, **changes)

    async def _redrive(self, world: World, job: JobRecord, payload: bytes | None = None) -> JobRecord:
        redriving = Redriving(job.tenant, job.id, world.submission().job_id, world.now, payload)
        new = await world.store.redrive_job(redriving, entry_of(world, "redrive", job.id, job.tenant))
        assert isinstance(new, JobRecord), new
        return new

    async def test_only_what_failed_and_was_not_redriven(self, world: World) -> None:
        await job_in(world, Status.SUCCEEDED)
        await job_in(world, Status.CANCELLED)
        first, second, third = [await self._fail(world) for _ in range(3)]
        assert await survey(world, 1, is_dead_letter=True) == [third.id, second.id, first.id]
        assert await dead_letters_onward(world, 1) == [first.id, second.id, third.id]
        await self._redrive(world, second)
        assert await survey(world, is_dead_letter=True) == [third.id, first.id]
        assert await dead_letters_onward(world) == [first.id, third.id]
        assert len(await survey(world, status=Status.FAILED)) == 3

    async def test_by_filter(self, world: World) -> None:
        mine = await self._fail(world)
        other = await self._fail(world, tenant=OTHER_TENANT)
        world.clock.advance(1)
        late = await self._fail(world, operation=OTHER_OPERATION)
        for look in (survey, dead_letters_onward):
            fixed = {"is_dead_letter": True} if look is survey else {}
            assert await look(world, tenant=OTHER_TENANT, **fixed) == [other.id]
            assert await look(world, operation=OTHER_OPERATION, **fixed) == [late.id]
            assert set(await look(world, finished_until=world.now, **fixed)) == {mine.id, other.id}
            assert await look(world, created_since=world.now, **fixed) == [late.id]
            assert set(await look(world, created_until=world.now, **fixed)) == {mine.id, other.id}
            assert await look(world, category=ErrorCategory.TIMEOUT, **fixed) == []

    async def test_another_payload_in_its_place(self, world: World) -> None:
        failed = await self._fail(world)
        new = await self._redrive(world, failed, b'{"branch":"south"}')
        assert (new.redrive_of, new.chain_id) == (failed.id, failed.id)
        assert (await world.restart(new.id)).payload == b'{"branch":"south"}'
        payload = await world.store.read_payload(TENANT, failed.id, entry_of(world, "read", failed.id))
        assert payload == b'{"branch":"north"}'

    async def test_each_is_written_down_once(self, world: World) -> None:
        failed = await self._fail(world)
        world.clock.advance(1)
        done_at = world.now
        new = await self._redrive(world, failed)
        world.clock.advance(1)
        assert await self._redrive(world, failed) == new
        assert await _audit(world) == [(done_at, "redrive", failed.id)]

    async def test_a_refusal_writes_nothing_down(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        for tenant, job_id in ((TENANT, job.id), (OTHER_TENANT, job.id), (TENANT, UNKNOWN_ID)):
            redriving = Redriving(tenant, job_id, world.submission().job_id, world.now)
            answer = await world.store.redrive_job(redriving, entry_of(world, "redrive", job_id))
            assert isinstance(answer, RedriveRefusal)
        assert await _audit(world) == []


class TestOperating(Suite):
    """One job of whomever, for an operator."""

    @pytest.mark.parametrize("status", list(Status))
    async def test_a_job_is_found_by_its_id(self, world: World, status: Status) -> None:
        job = await job_in(world, status, tenant=OTHER_TENANT)
        assert await world.store.find_any_job(job.id, world.now) == job
        assert await world.store.find_any_job(UNKNOWN_ID, world.now) is None
        assert await world.store.find_any_job("job_\0", world.now) is None

    async def test_a_tombstone_is_found_by_its_id(self, world: World) -> None:
        job = await job_in(world, Status.SUCCEEDED)
        await world.store.erase_job(TENANT, job.id, world.now)
        assert await world.store.find_any_job(job.id, world.now) == Tombstone(job.id, OPERATION, world.now)
        world.clock.advance(POLICY.retention.succeeded_s + POLICY.retention.tombstone_s)
        assert await world.store.find_any_job(job.id, world.now) is None

    async def test_that_a_payload_was_read_is_written_down(self, world: World) -> None:
        job = await world.accept(payload=b'{"branch":"east"}')
        entry = entry_of(world, "read", job.id)
        assert await world.store.read_payload(TENANT, job.id, entry) == b'{"branch":"east"}'
        assert await _audit(world) == [(world.now, "read", job.id)]
        assert await world.store.read_payload(OTHER_TENANT, job.id, entry) is None
        assert await world.store.read_payload(TENANT, UNKNOWN_ID, entry) is None
        assert len(await _audit(world)) == 1

    async def test_a_cancel_is_written_down_if_it_changes_something(self, world: World) -> None:
        policies = Policies(world.policies)
        claim = await world.start()
        queued = await world.accept()
        done_at = world.now
        for _ in range(2):
            for job, expected in ((claim.job, Status.RUNNING), (queued, Status.CANCELLED)):
                entry = entry_of(world, "cancel", job.id)
                answer = await world.store.cancel_job(TENANT, job.id, "Too much", policies, world.now, entry)
                assert isinstance(answer, CancelAnswer)
                assert answer.job.status is expected
                assert answer.job.cancel_reason == "Too much"
            world.clock.advance(1)
        assert await _audit(world) == [(done_at, "cancel", queued.id), (done_at, "cancel", claim.job.id)]
        done = await world.finish(claim, DONE)
        answer = await world.store.cancel_job(
            TENANT, done.id, None, policies, world.now, entry_of(world, "cancel", done.id)
        )
        assert answer == CancelAnswer(CancelDisposition.ALREADY_FINISHED, done)
        assert len(await _audit(world)) == 2

    async def test_how_much_there_is_of_a_tenant(self, world: World) -> None:
        assert await world.store.measure_tenant(TENANT) == TenantWork(0, 0, 0)
        await _jobs(world)
        await world.accept(operation=OTHER_OPERATION, delay_s=5)
        await world.accept(tenant=OTHER_TENANT)
        assert await world.store.measure_tenant(TENANT) == TenantWork(queued=2, running=1, finished=3)
        assert await world.store.measure_tenant(OTHER_TENANT) == TenantWork(queued=1, running=0, finished=0)

    async def test_work_is_counted_so_far_only(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "TENANT_JOBS_COUNTED_MAX", 3)
        for _ in range(5):
            await world.accept()
        assert (await world.store.measure_tenant(TENANT)).queued == 3

    async def test_entries_hold_what_they_were_given(self, world: World) -> None:
        job = await world.accept()
        details = {"text": "with \N{SNOWMAN}", "number": 1, "nested": {"none": None}}
        entry = structs.replace(entry_of(world, "read", job.id), details=details)
        await world.store.read_payload(TENANT, job.id, entry)
        (found,) = await world.store.read_audit(10)
        assert found.entry == entry
