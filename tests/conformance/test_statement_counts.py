"""What each verb costs on SQLite, in statements and rows. What is not configured costs nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from coatcheck.core.costs import DEFAULT_WINDOW_S, window_of
from coatcheck.core.job import Progress
from coatcheck.core.outcome import Outcome, Released
from coatcheck.core.policy import Policies
from coatcheck.core.quotas import ALL
from coatcheck.core.states import Status
from coatcheck.store.records import Accepted, Beat, Finishing, Prunable, Redriving, Spending
from coatcheck.stores.sqlite import readers as readers_module
from coatcheck.stores.sqlite import store as store_module
from coatcheck.stores.sqlite.connection import open_reader, open_writer
from coatcheck.testing.conformance.budgets import charge
from coatcheck.testing.conformance.queue_limits import queued_limit
from coatcheck.testing.conformance.start_limits import at_most
from coatcheck.testing.conformance.world import (
    BROKEN,
    DONE,
    FLAKY,
    LEASE_S,
    OPERATION,
    POLICY,
    TENANT,
    World,
    cancel,
    job_in,
    key_of,
    rescue,
    stale,
    watch,
)
from harness.sqlite_factory import SqliteFactory
from harness.sqlite_meter import Cost, Meter

Verb: TypeAlias = Callable[[], Awaitable[object]]


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter()
    monkeypatch.setattr(store_module, "open_writer", meter.watched(open_writer))
    monkeypatch.setattr(readers_module, "open_reader", meter.watched(open_reader))
    return meter


async def _accept(world: World) -> Verb:
    submission = world.submission()
    return lambda: world.store.accept_job(submission)


async def _accept_behind(world: World) -> Verb:
    await world.accept()
    return await _accept(world)


async def _accept_with_key(world: World) -> Verb:
    submission = world.submission(key=key_of(world))
    return lambda: world.store.accept_job(submission)


async def _accept_with_deadline(world: World) -> Verb:
    submission = world.submission(deadline_at=world.now + 1000)
    return lambda: world.store.accept_job(submission)


async def _accept_delayed(world: World) -> Verb:
    submission = world.submission(delay_s=60)
    return lambda: world.store.accept_job(submission)


async def _replay(world: World) -> Verb:
    await world.accept(key=key_of(world))
    return await _accept_with_key(world)


async def _conflict(world: World) -> Verb:
    await world.accept(key=key_of(world, fingerprint="e" * 64))
    return await _accept_with_key(world)


async def _accept_under_a_limit(world: World) -> Verb:
    submission = world.submission(limits=(queued_limit(5), queued_limit(9, ALL)))
    return lambda: world.store.accept_job(submission)


async def _refuse(world: World) -> Verb:
    submission = world.submission(limits=(queued_limit(0),), key=key_of(world))
    return lambda: world.store.accept_job(submission)


async def _claim_one(world: World) -> Verb:
    await world.accept()
    return world.claims


async def _claim_under_a_bound(world: World) -> Verb:
    world.policies[OPERATION] = replace(POLICY, concurrency_max=5)
    return await _claim_one(world)


async def _claim_under_a_limit(world: World) -> Verb:
    await world.accept()
    return lambda: world.claims(terms=at_most(1, TENANT))


async def _claim_past_a_held_turn(world: World) -> Verb:
    await _claim_at_the_limit(world)
    assert await world.claim(terms=at_most(1, TENANT)) == []
    await world.accept(tenant="birch")
    return lambda: world.claims(terms=at_most(1, TENANT))


async def _claim_at_the_limit(world: World) -> Verb:
    await world.start()
    await world.accept()
    return lambda: world.claims(terms=at_most(1, TENANT))


async def _finish_under_a_limit(world: World) -> Verb:
    finishing = Finishing((await world.start()).lease, DONE, POLICY, 0.5, is_limited=True)
    return lambda: world.store.finish_attempt(finishing, world.now)


async def _finish_for_a_held_turn(world: World) -> Verb:
    finishing = Finishing((await world.start()).lease, DONE, POLICY, 0.5, is_limited=True)
    await world.accept()
    assert await world.claim(terms=at_most(1, TENANT)) == []
    return lambda: world.store.finish_attempt(finishing, world.now)


async def _claim_eight(world: World) -> Verb:
    for _ in range(10):
        await world.accept()
    return lambda: world.claims(slots=8)


async def _claim_nothing(world: World) -> Verb:
    return world.claims


async def _beat(world: World) -> Verb:
    beat = Beat((await world.start()).lease)
    return lambda: world.store.extend_leases([beat], world.now)


async def _beat_with_progress(world: World) -> Verb:
    beat = Beat((await world.start()).lease, Progress(0.5, "Half"))
    return lambda: world.store.extend_leases([beat], world.now)


def _finish(outcome: Outcome) -> Callable[[World], Awaitable[Verb]]:
    async def prepare(world: World) -> Verb:
        finishing = Finishing((await world.start()).lease, outcome, POLICY, 0.5)
        return lambda: world.store.finish_attempt(finishing, world.now)

    return prepare


async def _lease_lost(world: World) -> Verb:
    lease = stale((await world.start()).lease)
    return lambda: asyncio.gather(
        world.store.finish_attempt(Finishing(lease, DONE, POLICY, 0.5), world.now), return_exceptions=True
    )


async def _accept_charged(world: World) -> Verb:
    submission = world.submission(charges=(charge(world, 1, 10),))
    return lambda: world.store.accept_job(submission)


async def _accept_over_budget(world: World) -> Verb:
    submission = world.submission(charges=(charge(world, 11, 10),))
    return lambda: world.store.accept_job(submission)


async def _cancel_charged(world: World) -> Verb:
    world.policies[OPERATION] = replace(POLICY, cost={"cost": 1.0})
    disposition = await world.store.accept_job(world.submission(charges=(charge(world, 1),)))
    assert isinstance(disposition, Accepted)
    return lambda: cancel(world, disposition.job)


async def _spend(world: World) -> Verb:
    spending = Spending((await world.start()).lease, 1, "calls", 1, window_of(world.now, DEFAULT_WINDOW_S))
    return lambda: world.store.spend(spending)


async def _record_effect(world: World) -> Verb:
    lease = (await world.start()).lease
    return lambda: world.store.record_effect(lease, "mail", b"sent", world.now)


async def _find_effect(world: World) -> Verb:
    lease = (await world.start()).lease
    return lambda: world.store.find_effect(lease, "mail")


async def _find_earlier(world: World) -> Verb:
    await world.accept(key=key_of(world, "k"))
    again = world.submission(key=key_of(world, "k"))
    return lambda: world.store.find_earlier(again)


async def _find_job(world: World) -> Verb:
    job = await job_in(world, Status.SUCCEEDED)
    return lambda: world.store.find_job(TENANT, job.id, world.now)


async def _read_result(world: World) -> Verb:
    job = await job_in(world, Status.SUCCEEDED)
    return lambda: world.store.read_result(TENANT, job.id, world.now)


async def _list_attempts(world: World) -> Verb:
    job = await job_in(world, Status.SUCCEEDED)
    return lambda: world.store.list_attempts(TENANT, job.id)


async def _cancel_waiting(world: World) -> Verb:
    job = await world.accept()
    return lambda: cancel(world, job)


async def _cancel_running(world: World) -> Verb:
    claim = await world.start()
    return lambda: cancel(world, claim.job)


async def _cancel_again(world: World) -> Verb:
    verb = await _cancel_running(world)
    await verb()
    return verb


async def _erase(world: World) -> Verb:
    job = await job_in(world, Status.SUCCEEDED)
    return lambda: world.store.erase_job(TENANT, job.id, world.now)


async def _redrive(world: World) -> Verb:
    job = await job_in(world, Status.FAILED)
    redriving = Redriving(TENANT, job.id, world.submission().job_id, world.now)
    return lambda: world.store.redrive_job(redriving)


async def _promote_nothing(world: World) -> Verb:
    return lambda: world.store.promote_due(world.now, 100)


async def _promote_one(world: World) -> Verb:
    await world.accept(delay_s=1)
    world.clock.advance(1)
    return await _promote_nothing(world)


async def _rescue_nothing(world: World) -> Verb:
    await world.start()
    return lambda: rescue(world)


async def _rescue_one(world: World) -> Verb:
    await world.start()
    assert await watch(world, LEASE_S - 1) == 0
    world.clock.advance(1)
    return lambda: rescue(world)


async def _expire_nothing(world: World) -> Verb:
    return lambda: world.store.expire_overdue(Policies(world.policies), world.now, 100)


async def _expire_one(world: World) -> Verb:
    await world.accept(deadline_at=world.now + 1000)
    world.clock.advance(1)
    return await _expire_nothing(world)


def _prune(what: Prunable, after_s: float) -> Callable[[World], Awaitable[Verb]]:
    async def prepare(world: World) -> Verb:
        await job_in(world, Status.SUCCEEDED, key=key_of(world, window_s=10))
        world.clock.advance(after_s)
        if what is Prunable.TOMBSTONES:
            await world.store.prune_expired(Prunable.JOBS, world.now, 100)
        return lambda: world.store.prune_expired(what, world.now, 100)

    return prepare


async def _count_ahead(world: World) -> Verb:
    job = await world.accept()
    return lambda: world.store.count_ahead(job, 10)


async def _measure(world: World) -> Verb:
    await world.accept()
    return lambda: world.store.measure_queues(world.now)


async def _check_health(world: World) -> Verb:
    return world.store.check_health


async def _read_outbox(world: World) -> Verb:
    return lambda: world.store.read_outbox(100)


_KEPT_S = POLICY.retention.succeeded_s

# verb -> statements and changed rows, (without a channel, with one)
COSTS: dict[str, tuple[Callable[[World], Awaitable[Verb]], Cost, Cost]] = {
    "accept": (_accept, (5, 4), (6, 5)),
    "accept behind another": (_accept_behind, (4, 4), (5, 5)),
    "accept with a key": (_accept_with_key, (6, 5), (7, 6)),
    "accept with a deadline": (_accept_with_deadline, (6, 5), (7, 6)),
    "accept charged": (_accept_charged, (8, 6), (9, 7)),
    "accept over budget": (_accept_over_budget, (1, 0), (1, 0)),
    "cancel charged": (_cancel_charged, (7, 6), (8, 7)),
    "spend": (_spend, (3, 2), (3, 2)),
    "accept delayed": (_accept_delayed, (3, 3), (4, 4)),
    "accept under limits": (_accept_under_a_limit, (6, 4), (7, 5)),
    "refuse at a limit": (_refuse, (3, 2), (3, 2)),
    "replay": (_replay, (3, 0), (3, 0)),
    "key conflict": (_conflict, (2, 0), (2, 0)),
    "claim one": (_claim_one, (9, 4), (10, 5)),
    "claim one under a bound": (_claim_under_a_bound, (10, 4), (11, 5)),
    "claim one under a tenant's limit": (_claim_under_a_limit, (10, 4), (11, 5)),
    "claim nothing at a tenant's limit": (_claim_at_the_limit, (8, 1), (8, 1)),
    "claim past a held turn": (_claim_past_a_held_turn, (9, 4), (10, 5)),
    "claim eight": (_claim_eight, (9, 17), (10, 25)),
    "claim nothing": (_claim_nothing, (4, 0), (4, 0)),
    "beat": (_beat, (1, 1), (1, 1)),
    "beat with progress": (_beat_with_progress, (1, 1), (1, 1)),
    "finish succeeded": (_finish(DONE), (5, 4), (6, 5)),
    "finish under a tenant's limit": (_finish_under_a_limit, (6, 4), (7, 5)),
    "finish for a held turn": (_finish_for_a_held_turn, (7, 5), (8, 6)),
    "finish failed": (_finish(BROKEN), (4, 3), (5, 4)),
    "finish for another try": (_finish(FLAKY), (6, 4), (7, 5)),
    "release": (_finish(Released()), (6, 4), (7, 5)),
    "lease lost": (_lease_lost, (1, 0), (1, 0)),
    "record an effect": (_record_effect, (2, 1), (2, 1)),
    "find an effect": (_find_effect, (1, 0), (1, 0)),
    "find what a key stands for": (_find_earlier, (2, 0), (2, 0)),
    "find a job": (_find_job, (1, 0), (1, 0)),
    "read a result": (_read_result, (1, 0), (1, 0)),
    "list attempts": (_list_attempts, (1, 0), (1, 0)),
    "cancel waiting": (_cancel_waiting, (5, 4), (6, 5)),
    "cancel running": (_cancel_running, (4, 1), (4, 1)),
    "cancel again": (_cancel_again, (4, 0), (4, 0)),
    "erase": (_erase, (7, 5), (7, 5)),
    "redrive": (_redrive, (7, 5), (8, 6)),
    "promote nothing": (_promote_nothing, (2, 0), (2, 0)),
    "promote one": (_promote_one, (6, 3), (6, 3)),
    "rescue nothing": (_rescue_nothing, (1, 0), (1, 0)),
    "rescue one": (_rescue_one, (7, 4), (8, 5)),
    "expire nothing": (_expire_nothing, (2, 0), (2, 0)),
    "expire one": (_expire_one, (9, 5), (10, 6)),
    "prune a result": (_prune(Prunable.RESULTS, POLICY.retention.result_s), (1, 1), (1, 1)),
    "prune a job": (_prune(Prunable.JOBS, _KEPT_S), (7, 5), (7, 5)),
    "prune a tombstone": (_prune(Prunable.TOMBSTONES, _KEPT_S + POLICY.retention.tombstone_s), (1, 1), (1, 1)),
    "prune a key": (_prune(Prunable.KEYS, 10), (1, 1), (1, 1)),
    "measure queues": (_measure, (6, 0), (6, 0)),
    "count ahead": (_count_ahead, (1, 0), (1, 0)),
    "check health": (_check_health, (1, 0), (1, 0)),
    "read the outbox": (_read_outbox, (1, 0), (1, 0)),
}


@pytest.mark.parametrize("has_channel", [False, True], ids=["alone", "channel"])
@pytest.mark.parametrize("verb", COSTS)
async def test_a_verb_costs_exactly_this(tmp_path: Path, meter: Meter, verb: str, has_channel: bool) -> None:
    world = World(SqliteFactory(tmp_path / "counts.db"), has_channel)
    await world.reopen()
    prepare, *costs = COSTS[verb]
    run = await prepare(world)
    with meter.measuring() as measured:
        await run()
    await world.close()
    assert measured == [costs[has_channel]], "\n".join(meter.statements)


def test_a_channel_costs_one_row_for_a_change_of_status_and_nothing_else() -> None:
    for verb, (_, (statements, rows), with_channel) in COSTS.items():
        entries = with_channel[1] - rows
        assert 0 <= entries <= 8, verb
        assert (entries > 0) <= with_channel[0] - statements <= entries, verb
