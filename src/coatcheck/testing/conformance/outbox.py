"""The outbox: one entry for each change of status, in its commit, and none where no channel is configured."""

from coatcheck.core.events import EventType, OutboxEntry, event_data
from coatcheck.core.job import JobRecord, Progress
from coatcheck.core.outcome import Released
from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.records import Beat, Redriving
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    OPERATION,
    TENANT,
    Suite,
    World,
    cancel,
    job_in,
    key_of,
    let_leases_run_out,
)

_STARTS = [EventType.ACCEPTED, EventType.STARTED]


async def _told(world: World) -> list[OutboxEntry]:
    return list(await world.store.read_outbox(500))


async def _types(world: World) -> list[EventType]:
    return [entry.type for entry in await _told(world)]


class TestOutbox(Suite):
    """With a channel."""

    async def test_an_entry_names_its_job_and_change(self, telling_world: World) -> None:
        world = telling_world
        job = await world.accept()
        (entry,) = await _told(world)
        assert (entry.type, entry.job_id, entry.tenant) == (EventType.ACCEPTED, job.id, TENANT)
        assert (entry.operation, entry.version, entry.occurred_at) == (OPERATION, job.version, world.now)
        assert (entry.correlation_id, entry.data) == (job.correlation_id, event_data(job))
        world.clock.advance(2)
        (claim,) = await world.claim()
        _, started = await _told(world)
        assert (started.type, started.version) == (EventType.STARTED, claim.job.version)
        assert started.occurred_at == world.now

    async def test_a_life_is_told_in_order(self, telling_world: World) -> None:
        world = telling_world
        claim = await world.start()
        await world.finish(claim, FLAKY)
        await world.finish(await world.restart(claim.job.id), Released())
        await world.finish(await world.restart(claim.job.id), DONE)
        entries = await _told(world)
        again = [EventType.REQUEUED, EventType.STARTED]
        assert [entry.type for entry in entries] == [*_STARTS, *again, *again, EventType.SUCCEEDED]
        for values in ([entry.seq for entry in entries], [entry.version for entry in entries]):
            assert values == sorted(set(values))
        assert entries[-1].version == (await world.find(claim.job.id)).version

    async def test_every_end_is_told_once(self, telling_world: World) -> None:
        world = telling_world
        for status in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED):
            await job_in(world, status)
        waiting = await world.accept()
        await cancel(world, waiting)
        await cancel(world, waiting)
        overdue = await world.accept(deadline_at=world.now + 1000)
        world.clock.advance(2)
        await world.store.expire_overdue(Policies(world.policies), world.now, 10)
        told = [(entry.job_id, entry.type) for entry in await _told(world)]
        assert [item[1] for item in told if item[1] not in _STARTS] == [
            EventType.SUCCEEDED,
            EventType.FAILED,
            EventType.CANCELLED,
            EventType.CANCELLED,
            EventType.FAILED,
        ]
        assert told[-1] == (overdue.id, EventType.FAILED)

    async def test_an_end_at_the_claim_is_told_too(self, telling_world: World) -> None:
        world = telling_world
        await world.accept(deadline_at=world.now + 1000)
        world.clock.advance(2)
        assert await world.claim() == []
        assert await _types(world) == [EventType.ACCEPTED, EventType.FAILED]

    async def test_a_lost_worker_is_told_as_requeued(self, telling_world: World) -> None:
        world = telling_world
        await world.start()
        await let_leases_run_out(world)
        assert await _types(world) == [*_STARTS, EventType.REQUEUED]

    async def test_what_changes_no_status_is_not_told(self, telling_world: World) -> None:
        world = telling_world
        claim = await world.start(key=key_of(world))
        await world.store.extend_leases([Beat(claim.lease, Progress(0.5, None))], world.now)
        await cancel(world, claim.job)
        await world.store.accept_job(world.submission(key=key_of(world)))
        await world.store.record_effect(claim.lease, "mail", b"sent", world.now)
        assert await _types(world) == _STARTS

    async def test_a_redrive_is_told_as_a_new_job(self, telling_world: World) -> None:
        world = telling_world
        failed = await world.finish(await world.start(), BROKEN)
        new = await world.store.redrive_job(Redriving(TENANT, failed.id, world.submission().job_id, world.now))
        assert isinstance(new, JobRecord)
        entry = (await _told(world))[-1]
        assert (entry.type, entry.job_id, len(await _told(world))) == (EventType.ACCEPTED, new.id, 4)

    async def test_the_oldest_come_first_and_stay_until_removed(self, telling_world: World) -> None:
        world = telling_world
        ids = [(await world.accept()).id for _ in range(5)]
        first = list(await world.store.read_outbox(2))
        assert [entry.job_id for entry in first] == ids[:2]
        assert list(await world.store.read_outbox(2)) == first
        await world.store.remove_relayed([first[0].seq])
        assert [entry.job_id for entry in await world.store.read_outbox(2)] == ids[1:3]
        await world.store.remove_relayed([first[0].seq, 10**12])
        await world.store.remove_relayed([])
        assert [entry.job_id for entry in await _told(world)] == ids[1:]

    async def test_one_process_relays_at_a_time(self, telling_world: World) -> None:
        world = telling_world
        await world.accept()
        other = await world.factory.open_store(world.clock, True, world.faults)
        entries = list(await other.read_outbox(10))
        assert len(entries) == 1
        assert await _told(world) == []
        await other.close()
        assert await _told(world) == entries

    async def test_numbers_are_never_given_again(self, telling_world: World) -> None:
        world = telling_world
        await world.accept()
        (first,) = await _told(world)
        await world.store.remove_relayed([first.seq])
        await world.accept()
        (second,) = await _told(world)
        assert second.seq > first.seq

    async def test_entries_survive_a_restart(self, telling_world: World) -> None:
        world = telling_world
        await world.finish(await world.start(), DONE)
        before = await _told(world)
        await world.reopen()
        assert await _told(world) == before

    async def test_without_a_channel_nothing_is_kept_to_be_told(self, world: World) -> None:
        await world.finish(await world.start(), DONE)
        await cancel(world, await world.accept())
        assert await _told(world) == []
