"""Every pair of a status and an event, driven through the store: a legal move happens, any other changes nothing."""

from collections.abc import Awaitable, Callable

import pytest

from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.outcome import Cancelled, Outcome, Released
from coatcheck.core.policy import Policies
from coatcheck.core.states import TRANSITIONS, Event, Status, target
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import (
    Beat,
    BeatAnswer,
    CancelAnswer,
    CancelDisposition,
    Claim,
    EraseDisposition,
    Finishing,
    JobQuery,
    Lease,
    RedriveRefusal,
    Redriving,
    Tombstone,
)
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    TENANT,
    Suite,
    World,
    cancel,
    let_leases_run_out,
)

_DEADLINE_S = 60
_NO_SUCH_VERB = (Status.QUEUED, Event.REQUEST_CANCEL)
_PAIRS = [(status, event) for status in Status for event in Event if (status, event) != _NO_SUCH_VERB]


async def _prepare(world: World, status: Status) -> tuple[JobRecord, Lease]:
    """A job in this status that has been started once, and the lease of that start."""
    claim = await world.start(deadline_at=world.now + _DEADLINE_S * 1000)
    match status:
        case Status.QUEUED:
            await world.finish(claim, Released())
        case Status.SUCCEEDED:
            await world.finish(claim, DONE)
        case Status.FAILED:
            await world.finish(claim, BROKEN)
        case Status.CANCELLED:
            await world.finish(claim, Cancelled())
        case Status.RUNNING:
            pass
    job = await world.find(claim.job.id)
    assert job.status is status
    return job, claim.lease


async def _claim(world: World, job: JobRecord, lease: Lease) -> bool:
    return [claim.job.id for claim in await world.claim(slots=5)] == [job.id]


async def _progress(world: World, job: JobRecord, lease: Lease) -> bool:
    (answer,) = await world.store.extend_leases([Beat(lease, Progress(0.5, "Half of it"))], world.now)
    assert answer in (BeatAnswer.GO_ON, BeatAnswer.LOST)
    return answer is BeatAnswer.GO_ON


def _finish(outcome: Outcome) -> Callable[[World, JobRecord, Lease], Awaitable[bool]]:
    async def finish(world: World, job: JobRecord, lease: Lease) -> bool:
        try:
            await world.store.finish_attempt(Finishing(lease, outcome, world.policies[OPERATION], 0.5), world.now)
        except LeaseLost:
            return False
        return True

    return finish


async def _rescue(world: World, job: JobRecord, lease: Lease) -> bool:
    return await let_leases_run_out(world) == 1


async def _expire(world: World, job: JobRecord, lease: Lease) -> bool:
    world.clock.advance(_DEADLINE_S + 1)
    return await world.store.expire_overdue(Policies(world.policies), world.now, 10) == 1


async def _cancel(world: World, job: JobRecord, lease: Lease) -> bool:
    """A running job is cancelled by its worker's outcome, any other at once."""
    if job.status is Status.RUNNING:
        return await _finish(Cancelled())(world, job, lease)
    return await _request_cancel(world, job, lease)


async def _request_cancel(world: World, job: JobRecord, lease: Lease) -> bool:
    answer = await world.store.cancel_job(TENANT, job.id, "Not needed", Policies(world.policies), world.now)
    assert isinstance(answer, CancelAnswer)
    if answer.disposition in (CancelDisposition.CANCELLED, CancelDisposition.REQUESTED):
        return True
    was_cancelled = job.status is Status.CANCELLED
    assert answer.disposition is (
        CancelDisposition.ALREADY_CANCELLED if was_cancelled else CancelDisposition.ALREADY_FINISHED
    )
    return False


async def _erase(world: World, job: JobRecord, lease: Lease) -> bool:
    disposition = await world.store.erase_job(TENANT, job.id, world.now)
    assert disposition in (EraseDisposition.ERASED, EraseDisposition.NOT_FINISHED)
    return disposition is EraseDisposition.ERASED


async def _redrive(world: World, job: JobRecord, lease: Lease) -> bool:
    new_id = world.submission().job_id
    answer = await world.store.redrive_job(Redriving(TENANT, job.id, new_id, world.now))
    assert answer is RedriveRefusal.NOT_FAILED or (isinstance(answer, JobRecord) and answer.id == new_id)
    return isinstance(answer, JobRecord)


_DRIVERS: dict[Event, Callable[[World, JobRecord, Lease], Awaitable[bool]]] = {
    Event.CLAIM: _claim,
    Event.PROGRESS: _progress,
    Event.SUCCEED: _finish(DONE),
    Event.FAIL: _finish(BROKEN),
    Event.RETRY: _finish(FLAKY),
    Event.RELEASE: _finish(Released()),
    Event.RESCUE: _rescue,
    Event.EXPIRE: _expire,
    Event.CANCEL: _cancel,
    Event.REQUEST_CANCEL: _request_cancel,
    Event.ERASE: _erase,
    Event.REDRIVE: _redrive,
}


class TestTransitions(Suite):
    """TRANSITIONS, move by move."""

    @pytest.mark.parametrize(("status", "event"), _PAIRS)
    async def test_pair_of_status_and_event(self, world: World, status: Status, event: Event) -> None:
        before, lease = await _prepare(world, status)
        moved = await _DRIVERS[event](world, before, lease)
        assert moved is ((status, event) in TRANSITIONS)
        after = await world.store.find_job(TENANT, before.id, world.now)
        if not moved:
            assert after == before
        elif event is Event.ERASE:
            assert isinstance(after, Tombstone)
        else:
            assert isinstance(after, JobRecord)
            assert after.status is target(status, event)
            assert after.version == before.version + 1
            assert after.updated_at == world.now

    async def test_a_waiting_job_is_never_merely_asked_to_stop(self, world: World) -> None:
        job = await world.accept()
        answer = await world.store.cancel_job(TENANT, job.id, None, Policies(world.policies), world.now)
        assert isinstance(answer, CancelAnswer)
        assert answer.disposition is CancelDisposition.CANCELLED
        assert answer.job.status is Status.CANCELLED
        assert answer.job.finished_at == world.now

    @pytest.mark.parametrize("status", sorted(Status))
    async def test_only_final_states_have_an_end(self, world: World, status: Status) -> None:
        job, _ = await _prepare(world, status)
        assert (job.finished_at is not None) is status.is_final
        assert (job.expires_at is not None) is status.is_final
        assert (job.error is not None) is (status is Status.FAILED)
        assert (job.result is not None) is (status is Status.SUCCEEDED)
        assert (job.result_expires_at is not None) is (status is Status.SUCCEEDED)
        assert (job.dead_lettered_at is not None) is (status is Status.FAILED)

    async def test_a_running_job_told_to_stop_takes_progress_and_hears_of_it(self, world: World) -> None:
        claim: Claim = await world.start()
        requested = await cancel(world, claim.job)
        beat = Beat(claim.lease, Progress(0.9, None))
        assert list(await world.store.extend_leases([beat], world.now)) == [BeatAnswer.CANCEL]
        assert (await world.find(claim.job.id)).version == requested.version + 1

    async def test_every_status_lists_as_it_reads(self, world: World) -> None:
        jobs = [(await _prepare(world, status))[0] for status in Status if status is not Status.QUEUED]
        jobs.append(await world.accept())
        page = await world.store.list_jobs(JobQuery(TENANT, 50), world.now)
        assert list(page.jobs) == sorted(jobs, key=lambda job: job.id, reverse=True)
