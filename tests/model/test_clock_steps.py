"""A wall clock that is set: no early run, no mass expiry, and nothing forgotten before its time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.core.ids import IdSequence
from coatcheck.core.job import InstantMs, JobRecord
from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.core.policy import Policies, Policy, Retention
from coatcheck.core.states import Status
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import (
    Beat,
    BeatAnswer,
    Claim,
    ClaimRequest,
    Finishing,
    IdempotencyKey,
    Prunable,
    Submission,
)
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore

from .machine_clocks import FakeMachine

POLICY = Policy(queue_limit_s=600.0, retention=Retention(succeeded_s=2000, result_s=1000))
POLICIES = Policies({"reports": POLICY})
LEASE_S = 15.0

steps = pytest.mark.parametrize("step_s", [1, -1, 3600, -3600, 86_400, -86_400])


class Service:
    """A store on a machine whose clock is set, and the little that a service does with it."""

    def __init__(self, store: SqliteStore, machine: FakeMachine) -> None:
        self.store = store
        self.machine = machine
        self._ids = IdSequence()
        self._serial = 0

    @property
    def now(self) -> InstantMs:
        return self.store.clock.now()

    async def accept(self, delay_s: float = 0.0, key: str | None = None) -> JobRecord:
        self._serial += 1
        now = self.now
        submission = Submission(
            job_id=self._ids.next_id(self.store.clock.now_us(), self._serial),
            tenant="acme",
            operation="reports",
            operation_version="1",
            payload=b"{}",
            created_at=now,
            available_at=now + round(delay_s * 1000),
            deadline_at=None,
            priority=5,
            max_attempts=3,
            correlation_id="corr",
            key=None if key is None else IdempotencyKey(key, "sha256-1", "f" * 64, now + 600_000),
        )
        disposition = await self.store.accept_job(submission)
        job = getattr(disposition, "job", None)
        assert isinstance(job, JobRecord), disposition
        return job

    async def claim(self) -> list[Claim]:
        request = ClaimRequest("worker", 10, {"reports": 10}, {"reports": POLICY})
        return list((await self.store.claim_ready(request, self.now)).claims)

    async def find(self, job: JobRecord) -> object:
        return await self.store.find_job("acme", job.id, self.now)

    async def sweep(self) -> int:
        """All of upkeep but the rescue, once; how much it took away."""
        count = await self.store.expire_overdue(POLICIES, self.now, 100)
        return count + sum([await self.store.prune_expired(what, self.now, 100) for what in Prunable])

    async def pass_time(self, seconds: float) -> int:
        """Let time pass as in a busy service, which asks for it all the time."""
        taken = 0
        while seconds > 0:
            step_s = min(seconds, 3.0)
            self.machine.pass_time(step_s)
            seconds -= step_s
            taken += await self.sweep()
        return taken


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    machine = FakeMachine()
    store = SqliteStore(SqliteConfig(tmp_path / "jobs.db", "clock", LEASE_S), SystemClock(machine=machine.clocks))
    await store.open()
    yield Service(store, machine)
    await store.close()


@steps
async def test_delayed_work_starts_neither_early_nor_much_late(service: Service, step_s: int) -> None:
    job = await service.accept(delay_s=60)
    service.machine.set_wall_by(step_s)
    await service.pass_time(54)
    assert await service.claim() == []
    await service.pass_time(13)
    assert [claim.lease.job_id for claim in await service.claim()] == [job.id]


@steps
async def test_waiting_work_keeps_its_time_to_start(service: Service, step_s: int) -> None:
    job = await service.accept()
    service.machine.set_wall_by(step_s)
    assert await service.pass_time(540) == 0
    assert [claim.lease.job_id for claim in await service.claim()] == [job.id]


@steps
async def test_work_that_waits_too_long_still_fails(service: Service, step_s: int) -> None:
    job = await service.accept()
    service.machine.set_wall_by(step_s)
    assert await service.pass_time(670) == 1
    found = await service.find(job)
    assert isinstance(found, JobRecord)
    assert found.status is Status.FAILED


@steps
async def test_nothing_is_forgotten_before_its_time(service: Service, step_s: int) -> None:
    job = await service.accept(key="retry-1")
    (claim,) = await service.claim()
    result = Succeeded(ResultBody("text/csv", b"a,b"))
    await service.store.finish_attempt(Finishing(claim.lease, result, POLICY, 0.5), service.now)
    service.machine.set_wall_by(step_s)
    assert await service.pass_time(530) == 0
    assert await service.store.read_result("acme", job.id, service.now) is not None
    assert (await service.accept(key="retry-1")).id == job.id
    assert isinstance(await service.find(job), JobRecord)


@steps
async def test_leases_care_for_no_wall_clock(service: Service, step_s: int) -> None:
    await service.accept()
    (claim,) = await service.claim()
    for _ in range(10):
        service.machine.set_wall_by(step_s)
        service.machine.pass_time(LEASE_S / 5)
        assert list(await service.store.extend_leases([Beat(claim.lease)], service.now)) == [BeatAnswer.GO_ON]
        assert await service.store.rescue_leases(POLICIES, service.now, 10) == 0
        service.machine.set_wall_by(-step_s)
    rescued = 0
    for _ in range(6):
        service.machine.pass_time(LEASE_S / 5)
        rescued += await service.store.rescue_leases(POLICIES, service.now, 10)
    assert rescued == 1


@steps
async def test_newer_jobs_stand_above_older_ones(service: Service, step_s: int) -> None:
    older = await service.accept()
    service.machine.set_wall_by(step_s)
    newer = await service.accept()
    assert newer.id > older.id
    assert newer.created_at >= older.created_at
