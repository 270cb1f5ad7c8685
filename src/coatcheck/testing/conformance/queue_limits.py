"""Limits on queued jobs: exact whatever happens, told apart from keys, and gone with the jobs that were counted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coatcheck.core.errors import ErrorCategory
from coatcheck.core.outcome import Outcome, Released, RetryLater
from coatcheck.core.policy import Policies
from coatcheck.core.quotas import ALL, EACH, Limit, LimitBook, LimitName
from coatcheck.core.states import Status
from coatcheck.core.terms import Terms
from coatcheck.store.errors import StoreUnavailable
from coatcheck.store.records import (
    Accepted,
    Disposition,
    KeyConflict,
    QueueFull,
    Redriving,
    Replayed,
    Submission,
)
from coatcheck.testing.conformance.inbox import Inbox, InboxSuite
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    OPERATION,
    OTHER_OPERATION,
    TENANT,
    Suite,
    World,
    cancel,
    key_of,
    let_leases_run_out,
)


def queued_limit(most: float, operation: str = OPERATION) -> Limit:
    """At most so many queued jobs of each tenant, in an operation or in ALL."""
    return Limit((LimitName.QUEUED, EACH, operation), most)


async def _hand_in(world: World, most: float, **changes: Any) -> Disposition:
    return await world.store.accept_job(world.submission(limits=(queued_limit(most),), **changes))


async def _is_full(world: World, most: float, **changes: Any) -> bool:
    """Whether a job more is refused; if not, it is accepted."""
    return isinstance(await _hand_in(world, most, **changes), QueueFull)


async def _cancelled(world: World) -> None:
    await cancel(world, await world.accept())


async def _expired(world: World) -> None:
    await world.accept(deadline_at=world.now + 1000)
    world.clock.advance(1)
    assert await world.store.expire_overdue(Policies(world.policies), world.now, 100) == 1


async def _started(world: World) -> None:
    await world.start()


async def _finished(world: World) -> None:
    await world.finish(await world.start(), DONE)


async def _failed(world: World) -> None:
    await world.finish(await world.start(), BROKEN)


def _came_back(outcome: Outcome) -> Callable[[World], Awaitable[None]]:
    async def act(world: World) -> None:
        await world.finish(await world.start(), outcome)

    return act


async def _delayed(world: World) -> None:
    await world.accept(delay_s=60)


async def _became_due(world: World) -> None:
    await world.accept(delay_s=1)
    world.clock.advance(1)
    assert (await world.store.promote_due(world.now, 100)).count == 1


async def _rescued(world: World) -> None:
    await world.start()
    assert await let_leases_run_out(world) == 1


async def _redriven(world: World) -> None:
    failed = await world.finish(await world.start(), BROKEN)
    await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))


class TestQueueLimits(Suite):
    """One tenant's queue. World.accept has no limit; what it brings in counts all the same."""

    @pytest.mark.parametrize("most", [0, 1, 3])
    async def test_as_many_are_let_in_as_the_limit_says(self, world: World, most: int) -> None:
        answers = [await _hand_in(world, most) for _ in range(most + 2)]
        assert [type(answer) for answer in answers] == [Accepted] * most + [QueueFull] * 2
        assert answers[-1] == QueueFull(queued_limit(most), most)

    async def test_a_refused_job_leaves_nothing(self, world: World) -> None:
        before = await world.factory.count_rows()
        assert await _is_full(world, 0, key=key_of(world), deadline_at=world.now + 1000)
        assert await world.factory.count_rows() == before

    async def test_a_limit_holds_in_its_operation_or_over_all_and_for_each_tenant_by_itself(self, world: World) -> None:
        limits = (queued_limit(2), queued_limit(3, ALL))

        async def hand_in(operation: str, tenant: str = TENANT) -> Disposition:
            own = (queued_limit(2, operation), limits[1])
            return await world.store.accept_job(world.submission(operation=operation, tenant=tenant, limits=own))

        for operation in (OPERATION, OTHER_OPERATION, OPERATION):
            assert isinstance(await hand_in(operation), Accepted)
        assert await hand_in(OPERATION) == QueueFull(limits[0], 2)
        assert await hand_in(OTHER_OPERATION) == QueueFull(limits[1], 3)
        assert isinstance(await hand_in(OPERATION, "birch"), Accepted)

    @pytest.mark.parametrize("leave", [_cancelled, _expired, _started, _finished, _failed])
    async def test_a_job_that_waits_no_more_makes_room(
        self, world: World, leave: Callable[[World], Awaitable[None]]
    ) -> None:
        await leave(world)
        assert not await _is_full(world, 1)
        assert await _is_full(world, 1)

    @pytest.mark.parametrize(
        "stay",
        [_delayed, _became_due, _came_back(Released()), _came_back(RetryLater(60.0)), _rescued, _redriven],
        ids=["delayed", "due", "released", "backing off", "rescued", "redriven"],
    )
    async def test_a_job_that_waits_again_or_for_its_time_takes_a_place(
        self, world: World, stay: Callable[[World], Awaitable[None]]
    ) -> None:
        await stay(world)
        assert await _is_full(world, 1)
        assert not await _is_full(world, 2)

    async def test_a_job_that_comes_back_is_never_refused(self, world: World) -> None:
        claim = await world.start()
        assert not await _is_full(world, 1)
        assert (await world.finish(claim, Released())).status is Status.QUEUED
        assert await _hand_in(world, 1) == QueueFull(queued_limit(1), 2)

    async def test_another_limit_holds_from_the_next_submission_on(self, world: World) -> None:
        for most, is_full in [(1, False), (1, True), (3, False), (3, False), (3, True), (2, True), (0, True)]:
            assert await _is_full(world, most) is is_full

    async def test_erased_and_forgotten_jobs_count_no_more(self, world: World) -> None:
        job = await cancel(world, await world.accept())
        await world.store.erase_job(TENANT, job.id, world.now)
        assert not await _is_full(world, 1)


class TestQueueLimitsAndKeys(Suite):
    """A key that is known needs no place, and one that is refused stays free."""

    async def test_a_known_key_is_answered_although_the_queue_is_full(self, world: World) -> None:
        key = key_of(world)
        job = await world.accept(key=key)
        assert await _hand_in(world, 1, key=key) == Replayed(job)
        other = key_of(world, fingerprint="e" * 64)
        assert await _hand_in(world, 1, key=other) == KeyConflict(job.id)

    async def test_a_refused_key_is_free(self, world: World) -> None:
        job = await world.accept()
        assert await _is_full(world, 1, key=key_of(world))
        await cancel(world, job)
        accepted = await _hand_in(world, 1, key=key_of(world, fingerprint="e" * 64))
        assert isinstance(accepted, Accepted)

    async def test_a_key_whose_window_is_over_needs_a_place(self, world: World) -> None:
        await world.accept(key=key_of(world, window_s=10))
        world.clock.advance(10)
        assert await _is_full(world, 1, key=key_of(world))
        assert not await _is_full(world, 2, key=key_of(world))


class TestQueueLimitsTogether(Suite):
    """Submissions that meet in one commit, and in several processes."""

    async def test_of_a_batch_the_first_get_the_places_and_neighbours_are_not_touched(self, world: World) -> None:
        mine = [world.submission(limits=(queued_limit(3),)) for _ in range(5)]
        others = [world.submission(tenant="birch") for _ in range(2)]
        batch = [mine[0], others[0], mine[1], mine[2], mine[3], others[1], mine[4]]
        answers = await _accept_all(world, batch)
        accepted = [s for s, answer in zip(batch, answers, strict=True) if isinstance(answer, Accepted)]
        assert accepted == [*batch[:4], others[1]]

    @pytest.mark.parametrize(("most", "first"), [(1, Accepted), (0, QueueFull)])
    async def test_a_key_that_comes_twice_takes_one_place_or_none(
        self, world: World, most: int, first: type[Disposition]
    ) -> None:
        batch = [world.submission(limits=(queued_limit(most),), key=key_of(world)) for _ in range(3)]
        answers = await _accept_all(world, batch)
        again = Replayed if first is Accepted else QueueFull
        assert sorted(type(answer).__name__ for answer in answers) == sorted(
            each.__name__ for each in (first, again, again)
        )

    async def test_processes_together_let_in_no_more_and_no_fewer(self, world: World) -> None:
        stores = [world.store, *[await world.another_store() for _ in range(3)]]
        batch = [world.submission(limits=(queued_limit(17),)) for _ in range(80)]
        answers = await asyncio.gather(
            *(stores[n % len(stores)].accept_job(submission) for n, submission in enumerate(batch))
        )
        assert sum(isinstance(answer, Accepted) for answer in answers) == 17

    async def test_what_was_not_committed_takes_no_place(self, world: World) -> None:
        for nth in (1, 2):
            world.faults.raise_at("before-commit", OSError("No space left on device"), nth)
        with pytest.raises(StoreUnavailable):
            await _hand_in(world, 1, key=key_of(world))
        assert not await _is_full(world, 1, key=key_of(world))


async def _accept_all(world: World, batch: list[Submission]) -> list[Disposition]:
    return list(await asyncio.gather(*map(world.store.accept_job, batch)))


class TestQueueLimitsInInbox(InboxSuite):
    """What a caller commits is there; whether it finds room shows when it is promoted."""

    async def test_what_is_handed_in_takes_a_place_at_once(self, world: World, inbox: Inbox) -> None:
        await inbox.commit()
        assert await _is_full(world, 1)
        assert not await _is_full(world, 2)

    @pytest.mark.parametrize("limit", [2, 100])
    async def test_of_what_is_promoted_the_oldest_find_room_and_the_others_fail(
        self, world: World, inbox: Inbox, limit: int
    ) -> None:
        await world.accept()
        jobs = [await inbox.commit() for _ in range(5)]
        terms = Terms(book=LimitBook({(LimitName.QUEUED, EACH, ALL): 3}))
        while await inbox.promote(limit=limit, terms=terms):
            pass
        seen = [await world.find(job.id) for job in jobs]
        assert [job.status for job in seen] == [Status.QUEUED] * 2 + [Status.FAILED] * 3
        error = seen[-1].error
        assert error is not None
        assert (error.category, error.code) == (ErrorCategory.LIMIT_EXCEEDED, "too-many-queued")
        assert len(await world.claim(10)) == 3

    async def test_a_job_that_is_cancelled_in_the_inbox_needs_no_room(self, world: World, inbox: Inbox) -> None:
        job = await inbox.commit()
        assert (await cancel(world, job)).status is Status.CANCELLED
        assert not await _is_full(world, 1)
