"""The inbox: from its caller's commit on a job is there for every reader, as if it had come over HTTP."""

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

import pytest

from coatcheck.core import limits
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.events import EventType
from coatcheck.core.job import JobRecord
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.contract import Store
from coatcheck.store.inbox import InboxMeasure, InboxStore
from coatcheck.store.operating import JobFilter, JobSurvey
from coatcheck.store.records import (
    Accepted,
    CancelAnswer,
    CancelDisposition,
    Disposition,
    EraseDisposition,
    JobQuery,
    KeyConflict,
    Redriving,
    Replayed,
    Submission,
)
from coatcheck.testing.conformance.operating import survey
from coatcheck.testing.conformance.world import (
    OTHER_OPERATION,
    TENANT,
    Suite,
    World,
    cancel,
    key_of,
)


@runtime_checkable
class InboxFactory(Protocol):
    """What a factory that declares an inbox has to have."""

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A connection of a caller's own: its transaction commits with the block, and not if the block raises."""
        ...


class Inbox:
    """The inbox of a world's first store, and callers of their own."""

    def __init__(self, world: World) -> None:
        factory = world.factory
        assert isinstance(factory, InboxFactory), "the factory of an engine with an inbox opens transactions"
        self._world = world
        self.transaction = factory.transaction

    async def hand_in(self, connection: Any, submission: Submission) -> Disposition:
        return await self.of(self._world.store).hand_in(connection, submission)

    async def commit(self, **changes: Any) -> JobRecord:
        """Hand in work that must be accepted, in a transaction of its own."""
        async with self.transaction() as connection:
            answer = await self.hand_in(connection, self._world.submission(**changes))
        assert isinstance(answer, Accepted), answer
        return answer.job

    async def promote(self, store: Store | None = None, limit: int = 100, terms: Terms = ANY_TERMS) -> int:
        world = self._world
        return await self.of(store or world.store).promote_inbox(Policies(world.policies), terms, world.now, limit)

    async def measure(self) -> InboxMeasure:
        return await self.of(self._world.store).measure_inbox()

    @staticmethod
    def of(store: Store) -> InboxStore:
        assert isinstance(store, InboxStore), "an engine that declares an inbox has its verbs"
        return store


class RolledBack(Exception):
    """The caller changes its mind."""


async def _listed(world: World, **changes: Any) -> list[str]:
    page = await world.store.list_jobs(JobQuery(TENANT, 50, **changes), world.now)
    return [job.id for job in page.jobs]


def _inbox_of(world: World) -> Inbox:
    if not world.factory.capabilities.has_inbox:
        pytest.skip("this engine declares no inbox")
    return Inbox(world)


class InboxSuite(Suite):
    """Cases for engines that declare an inbox."""

    @pytest.fixture
    def inbox(self, world: World) -> Inbox:
        return _inbox_of(world)


class TestInbox(InboxSuite):
    """A caller's transaction decides whether a job is there; whether it is promoted yet, nobody can tell."""

    async def test_an_engine_has_what_it_declares(self, world: World) -> None:
        assert isinstance(world.store, InboxStore) == world.factory.capabilities.has_inbox

    async def test_nothing_is_there_before_the_commit(self, world: World, inbox: Inbox) -> None:
        async with inbox.transaction() as connection:
            answer = await inbox.hand_in(connection, world.submission())
            assert isinstance(answer, Accepted)
            assert await world.store.find_job(TENANT, answer.job.id, world.now) is None
            assert await inbox.promote() == 0
        assert await world.find(answer.job.id) == answer.job
        assert await inbox.promote() == 1

    async def test_nothing_ever_was_there_after_a_rollback(self, world: World, inbox: Inbox) -> None:
        submission = world.submission(key=key_of(world))
        with contextlib.suppress(RolledBack):
            async with inbox.transaction() as connection:
                assert isinstance(await inbox.hand_in(connection, submission), Accepted)
                raise RolledBack
        assert await inbox.promote() == 0
        assert await world.store.find_job(TENANT, submission.job_id, world.now) is None
        assert await _listed(world) == []
        assert isinstance(await world.store.accept_job(world.submission(key=key_of(world))), Accepted)

    @pytest.mark.parametrize("delay_s", [0, 60])
    async def test_a_job_reads_the_same_before_and_after(self, world: World, inbox: Inbox, delay_s: int) -> None:
        deadline_at = world.now + 600_000
        job = await inbox.commit(delay_s=delay_s, deadline_at=deadline_at, priority=3, traceparent="00-aa-bb-01")
        assert (job.status, job.version, job.deadline_at) == (Status.QUEUED, 1, deadline_at)
        assert await world.find(job.id) == job
        world.clock.advance(1)
        assert await inbox.promote() == 1
        assert await world.find(job.id) == job
        world.clock.advance(delay_s)
        (claim,) = await world.claim()
        assert (claim.job.id, claim.payload) == (job.id, world.submission().payload)

    async def test_it_is_nobody_elses(self, world: World, inbox: Inbox) -> None:
        job = await inbox.commit()
        assert await world.store.find_job("another", job.id, world.now) is None
        assert await world.store.cancel_job("another", job.id, None, Policies(world.policies), world.now) is None

    async def test_lists_show_it_in_its_place(self, world: World, inbox: Inbox) -> None:
        first = await world.accept()
        job = await inbox.commit()
        other = await inbox.commit(operation=OTHER_OPERATION)
        last = await world.accept()
        await inbox.commit(tenant="another")
        for _ in range(2):
            assert await _listed(world) == [last.id, other.id, job.id, first.id]
            assert await _listed(world, operation=OTHER_OPERATION) == [other.id]
            assert await _listed(world, status=Status.QUEUED, before=other.id) == [job.id, first.id]
            assert await _listed(world, status=Status.RUNNING) == await _listed(world, status=Status.FAILED) == []
            await inbox.promote()

    async def test_it_can_be_cancelled_before_it_is_promoted(self, world: World, inbox: Inbox) -> None:
        job = await inbox.commit()
        cancelled = await cancel(world, job, "not needed")
        assert (cancelled.status, cancelled.version, cancelled.cancel_reason) == (Status.CANCELLED, 2, "not needed")
        assert await world.find(job.id) == cancelled
        assert await inbox.promote() == 0
        assert await world.claim() == []

    async def test_it_is_not_finished_before_it_is_promoted(self, world: World, inbox: Inbox) -> None:
        job = await inbox.commit()
        assert await world.store.erase_job(TENANT, job.id, world.now) is EraseDisposition.NOT_FINISHED
        assert await world.store.list_attempts(TENANT, job.id) == []

    async def test_promotion_is_bounded_and_keeps_the_order(self, world: World, inbox: Inbox) -> None:
        ids = [(await inbox.commit()).id for _ in range(5)]
        assert [await inbox.promote(limit=2) for _ in range(4)] == [2, 2, 1, 0]
        assert [claim.job.id for claim in await world.claim(slots=9)] == ids

    async def test_many_promoters_move_each_job_once(self, world: World, inbox: Inbox) -> None:
        ids = {(await inbox.commit()).id for _ in range(40)}
        stores = [world.store, *[await world.another_store() for _ in range(2)]]
        turns = [inbox.promote(store, limit=5) for store in stores for _ in range(8)]
        counts = await asyncio.gather(*turns)
        assert sum(counts) + await inbox.promote() == len(ids)
        claimed = [claim.job.id for claim in await world.claim(slots=99)]
        assert sorted(claimed) == sorted(ids)

    async def test_no_reader_misses_it_while_it_moves(self, world: World, inbox: Inbox) -> None:
        others = [await world.another_store() for _ in range(2)]
        for _ in range(10):
            job = await inbox.commit()
            looks = [store.find_job(TENANT, job.id, world.now) for store in others for _ in range(5)]
            lists = [store.list_jobs(JobQuery(TENANT, 1), world.now) for store in others for _ in range(5)]
            found, listed, _ = await asyncio.gather(
                asyncio.gather(*looks), asyncio.gather(*lists), asyncio.gather(*map(inbox.promote, others))
            )
            assert [*found] == [job] * len(looks)
            assert [[*page.jobs] for page in listed] == [[job]] * len(lists)

    async def test_a_commit_of_which_the_caller_was_not_told_may_be_repeated(self, world: World, inbox: Inbox) -> None:
        submission = world.submission()

        async def commit() -> None:
            async with inbox.transaction() as connection:
                await inbox.hand_in(connection, submission)

        for status in (Status.QUEUED, Status.RUNNING):
            await commit()
            await commit()
            assert (await world.find(submission.job_id)).status is status
            assert await _listed(world) == [submission.job_id]
            assert await inbox.promote() == 1
            assert (await world.find(submission.job_id)).status is status
            await world.claim()


class TestInboxForOperators(InboxSuite):
    """What operators see of it."""

    async def test_operators_see_it_queued_in_its_place(self, world: World, inbox: Inbox) -> None:
        first = await world.accept()
        job = await inbox.commit()
        other = await inbox.commit(operation=OTHER_OPERATION)
        last = await world.accept()
        alone = await inbox.commit(tenant="another")
        for _ in range(2):
            for limit in (1, 2, 9):
                everything = [alone.id, last.id, other.id, job.id, first.id]
                assert await survey(world, limit) == await survey(world, limit, status=Status.QUEUED) == everything
                assert await survey(world, limit, tenant=TENANT) == everything[1:]
            assert await survey(world, tenant="another", status=Status.QUEUED) == [alone.id]
            assert await survey(world, tenant=TENANT, operation=OTHER_OPERATION) == [other.id]
            assert await survey(world, operation=OTHER_OPERATION) == [other.id]
            for status in (Status.RUNNING, Status.FAILED):
                assert await survey(world, tenant=TENANT, status=status) == await survey(world, status=status) == []
            assert await survey(world, tenant=TENANT, finished_since=0) == []
            page = await world.store.survey_jobs(JobSurvey(JobFilter(tenant="another"), 9), world.now)
            assert list(page.jobs) == [await world.store.find_any_job(alone.id, world.now)] == [alone]
            await inbox.promote()

    async def test_operators_see_once_what_was_handed_in_twice(self, world: World, inbox: Inbox) -> None:
        submission = world.submission()
        for _ in range(2):
            async with inbox.transaction() as connection:
                await inbox.hand_in(connection, submission)
            assert await survey(world) == await survey(world, tenant=TENANT) == [submission.job_id]
            await inbox.promote()

    async def test_it_is_measured_until_it_is_promoted(
        self, world: World, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert await inbox.measure() == InboxMeasure(0, None)
        began_at = world.now
        for _ in range(3):
            await inbox.commit()
            world.clock.advance(1)
        async with inbox.transaction() as connection:
            await inbox.hand_in(connection, world.submission())
            assert await inbox.measure() == InboxMeasure(3, began_at), "what is not committed is not there"
        await inbox.promote(limit=2)
        assert await inbox.measure() == InboxMeasure(2, began_at + 2000)
        monkeypatch.setattr(limits, "INBOX_JOBS_COUNTED_MAX", 1)
        assert await inbox.measure() == InboxMeasure(1, began_at + 2000), "counted no further"
        await inbox.promote()
        assert await inbox.measure() == InboxMeasure(0, None)


class TestInboxKeys(InboxSuite):
    """A key is one job's: known early where it can be, and decided at promotion."""

    @pytest.mark.parametrize("is_promoted", [False, True])
    async def test_a_key_that_is_committed_is_found_at_once(
        self, world: World, inbox: Inbox, is_promoted: bool
    ) -> None:
        job = await inbox.commit(key=key_of(world))
        if is_promoted:
            await inbox.promote()
        async with inbox.transaction() as connection:
            again = await inbox.hand_in(connection, world.submission(key=key_of(world)))
            other = await inbox.hand_in(connection, world.submission(key=key_of(world, fingerprint="e" * 64)))
        assert again == Replayed(job)
        assert other == KeyConflict(job.id)
        assert await _listed(world) == [job.id]

    async def test_open_transactions_with_one_key_do_not_wait_for_each_other(self, world: World, inbox: Inbox) -> None:
        async with asyncio.timeout(5), inbox.transaction() as one, inbox.transaction() as other:
            first = await inbox.hand_in(one, world.submission(key=key_of(world)))
            second = await inbox.hand_in(other, world.submission(key=key_of(world)))
            third = await inbox.hand_in(one, world.submission(key=key_of(world, fingerprint="e" * 64)))
            by_http = await world.store.accept_job(world.submission(key=key_of(world, "another")))
        jobs = [answer.job for answer in (first, second, third, by_http) if isinstance(answer, Accepted)]
        assert len(jobs) == 4
        assert await inbox.promote() == 3
        found = [await world.find(job.id) for job in jobs]
        assert [job.status for job in found] == [Status.QUEUED, Status.FAILED, Status.FAILED, Status.QUEUED]
        assert [job.error.code if job.error else None for job in found] == [
            None, "idempotency-key-replayed", "idempotency-key-reused", None
        ]  # fmt: skip

    async def test_a_job_that_lost_its_key_says_to_which(self, world: World, inbox: Inbox) -> None:
        submission = world.submission(key=key_of(world), deadline_at=world.now + 60_000)
        async with inbox.transaction() as connection:
            answer = await inbox.hand_in(connection, submission)
            first = await world.store.accept_job(world.submission(key=key_of(world, fingerprint="e" * 64)))
        assert isinstance(answer, Accepted)
        assert isinstance(first, Accepted)
        world.clock.advance(1)
        assert await inbox.promote() == 1
        refused = await world.find(answer.job.id)
        assert (refused.status, refused.version, refused.attempt) == (Status.FAILED, 2, 0)
        assert (refused.finished_at, refused.dead_lettered_at) == (world.now, world.now)
        assert refused.deadline_at == submission.deadline_at
        assert refused.error is not None
        assert (refused.error.category, refused.error.code) == (ErrorCategory.INVALID_INPUT, "idempotency-key-reused")
        assert first.job.id in refused.error.detail
        assert [claim.job.id for claim in await world.claim(slots=9)] == [first.job.id]

    async def test_a_job_that_lost_its_key_cannot_be_cancelled_and_can_be_redriven(
        self, world: World, inbox: Inbox
    ) -> None:
        async with inbox.transaction() as connection:
            answer = await inbox.hand_in(connection, world.submission(key=key_of(world)))
            await world.accept(key=key_of(world, fingerprint="e" * 64), delay_s=60)
        assert isinstance(answer, Accepted)
        job = answer.job
        told = await world.store.cancel_job(TENANT, job.id, None, Policies(world.policies), world.now)
        assert isinstance(told, CancelAnswer)
        assert (told.disposition, told.job.status) == (CancelDisposition.ALREADY_FINISHED, Status.FAILED)
        again = await world.store.redrive_job(Redriving(TENANT, job.id, world.submission().job_id, world.now))
        assert isinstance(again, JobRecord)
        (claim,) = await world.claim()
        assert (claim.job.id, claim.payload) == (again.id, world.submission().payload)

    async def test_a_key_whose_window_is_over_is_free(self, world: World, inbox: Inbox) -> None:
        await inbox.commit(key=key_of(world, window_s=10))
        await inbox.promote()
        world.clock.advance(10)
        job = await inbox.commit(key=key_of(world, fingerprint="e" * 64))
        assert await inbox.promote() == 1
        assert (await world.find(job.id)).status is Status.QUEUED


class TestInboxEvents(Suite):
    """What is told of a job does not depend on how it came."""

    @pytest.fixture
    def inbox(self, telling_world: World) -> Inbox:
        return _inbox_of(telling_world)

    async def test_it_is_told_when_it_is_promoted(self, telling_world: World, inbox: Inbox) -> None:
        world = telling_world
        job = await inbox.commit()
        assert await world.store.read_outbox(9) == []
        await inbox.promote()
        (entry,) = await world.store.read_outbox(9)
        assert (entry.type, entry.job_id, entry.version) == (EventType.ACCEPTED, job.id, 1)

    async def test_a_job_that_lost_its_key_is_told_from_beginning_to_end(
        self, telling_world: World, inbox: Inbox
    ) -> None:
        world = telling_world
        async with inbox.transaction() as connection:
            answer = await inbox.hand_in(connection, world.submission(key=key_of(world)))
            first = await world.accept(key=key_of(world))
        assert isinstance(answer, Accepted)
        await inbox.promote()
        told = [(entry.type, entry.job_id, entry.version) for entry in await world.store.read_outbox(9)]
        assert told == [
            (EventType.ACCEPTED, first.id, 1),
            (EventType.ACCEPTED, answer.job.id, 1),
            (EventType.FAILED, answer.job.id, 2),
        ]
