"""Limits over several processes: with everybody at once, and workers dying, none is ever passed, and every job ends.

Counted is what handlers saw, not what any counter of the store says.
"""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from coatcheck.core.policy import Policies
from coatcheck.operating import open_store
from coatcheck.settings import Settings
from coatcheck.testing.waiting import wait_until, wait_until_async
from faults.crowd import CLIENTS, Crowd, Run, Wish, most_at_once, opened_crowd
from faults.crowd_app import FEW_QUEUED_MAX, NARROW_RUNNING_MAX, app
from faults.places import ENGINES, MakePlace
from harness.http import problem

TENANTS = ("acme", "birch", "cedar", "dogwood")
PAIR = TENANTS[:2]
LEASE_S = 1.5
PLACES = 4
RUNNING_MAX, QUEUED_MAX = 4, 7
IN_A_SHARE = 2
PLACES_FREED = 20

on_each_engine = pytest.mark.parametrize("make_place", ENGINES.values(), ids=ENGINES)


def wishes(count: int, *operations: str, tenants: tuple[str, ...] = TENANTS) -> list[Wish]:
    """So many of each operation for each tenant, in turns."""
    return [Wish(tenant, operation) for _ in range(count) for operation in operations for tenant in tenants]


def by_wish(run: Run) -> Wish:
    return run.wish


def by_tenant(run: Run) -> str:
    return run.wish.tenant


def await_runs(crowd: Crowd, count: int) -> None:
    wait_until(lambda: len(crowd.runs()) >= count, f"{count} handlers to run", 30)


def accepted(answers: list[httpx.Response]) -> int:
    """How many were; the others have to be refused for want of a place."""
    refused = [answer for answer in answers if answer.status_code != httpx.codes.ACCEPTED]
    for answer in refused:
        problem(answer, 429, "too-many-queued")
    return len(answers) - len(refused)


def queued(crowd: Crowd) -> dict[str, int]:
    return {tenant: len(crowd.listed(tenant, "queued")) for tenant in crowd.tenants}


def standing(crowd: Crowd) -> list[tuple[int, int]]:
    """How many jobs of each tenant wait, and how many run."""
    return [(len(crowd.listed(tenant, "queued")), len(crowd.listed(tenant, "running"))) for tenant in crowd.tenants]


@on_each_engine
def test_running_limits_hold_while_workers_compete_and_die(make_place: MakePlace, tmp_path: Path) -> None:
    url = make_place(tmp_path).url
    with opened_crowd(tmp_path, url, tenant_running_max=RUNNING_MAX, concurrency=PLACES) as crowd:
        # Each dies when it has had all its places taken once.
        victims = crowd.launch("worker", crash_at=f"claimed-before-start:{PLACES + 2}")
        victims += crowd.launch("worker", crash_at="complete-after-commit:2")
        crowd.serve("api,upkeep", "api", "worker", "worker")
        crowd.await_started(*victims)
        crowd.let_in(*TENANTS)
        for operation, running in (("narrow", NARROW_RUNNING_MAX), ("wide", RUNNING_MAX)):
            answers = crowd.hand_in(*wishes(15, operation))
            assert {answer.status_code for answer in answers} == {202}
            await_runs(crowd, len(TENANTS) * running)
        crowd.let_go()
        crowd.await_deaths(*victims)
        crowd.await_ends()
        runs = crowd.runs()
    assert most_at_once(runs, by_tenant) == dict.fromkeys(TENANTS, RUNNING_MAX)
    narrow = most_at_once([run for run in runs if run.wish.operation == "narrow"], by_wish)
    assert narrow == {Wish(tenant, "narrow"): NARROW_RUNNING_MAX for tenant in TENANTS}
    assert len({run.process for run in runs}) == 2 + len(victims)
    assert {run.attempt for run in runs} == {1, 2}, "what a victim had was started again, and nothing else"


@on_each_engine
def test_a_tenant_has_its_share_of_each_worker_and_no_more(make_place: MakePlace, tmp_path: Path) -> None:
    url = make_place(tmp_path).url
    with opened_crowd(tmp_path, url, concurrency=PLACES) as crowd:
        crowd.serve("api", "worker", "worker")
        crowd.let_in(*PAIR)
        crowd.hand_in(*wishes(12, "shared", tenants=("acme",)))
        await_runs(crowd, 2 * IN_A_SHARE)
        crowd.hand_in(*wishes(12, "shared", tenants=("birch",)))
        await_runs(crowd, 2 * PLACES)
        crowd.let_go()
        crowd.await_ends()
        runs = crowd.runs()
    shares = most_at_once(runs, lambda run: (run.process, run.wish.tenant))
    assert sorted(shares.values()) == [IN_A_SHARE] * 4


async def rescue_alone(url: str) -> None:
    """Take all lost attempts back, and be gone before anybody looked at the turns that were held."""
    policies = Policies({name: operation.policy for name, operation in app.operations.items()})
    async with open_store(Settings(store=url, lease_s=LEASE_S, heartbeat_s=LEASE_S / 5)) as runtime:
        rescued = 0

        async def are_back() -> bool:
            nonlocal rescued
            rescued += await runtime.store.rescue_leases(policies, runtime.clock.now(), 100)
            return rescued == len(PAIR) * RUNNING_MAX

        await wait_until_async(are_back, "every lost attempt to be taken back", 30)


@on_each_engine
@pytest.mark.parametrize("has_committed", [False, True], ids=["before its commit", "right after it"])
def test_a_rescuer_that_dies_costs_no_place(make_place: MakePlace, has_committed: bool, tmp_path: Path) -> None:
    place = make_place(tmp_path)
    limits = {"tenant_running_max": RUNNING_MAX, "tenant_queued_max": QUEUED_MAX}
    with opened_crowd(tmp_path, place.url, **limits, lease_s=LEASE_S) as crowd:
        _, worker = crowd.serve("api", "worker")
        crowd.let_in(*PAIR)
        crowd.hand_in(*wishes(RUNNING_MAX, "wide", tenants=PAIR))
        await_runs(crowd, len(PAIR) * RUNNING_MAX)
        assert accepted(crowd.hand_in(*wishes(QUEUED_MAX, "wide", tenants=PAIR))) == len(PAIR) * QUEUED_MAX
        wait_until(lambda: place.count_held() == len(PAIR), "both tenants to be held")
        crowd.kill(worker)
        if has_committed:
            asyncio.run(rescue_alone(place.url))
            assert standing(crowd) == [(QUEUED_MAX + RUNNING_MAX, 0)] * len(PAIR)
        else:
            crowd.await_deaths(*crowd.launch("upkeep", crash_at="reap-updated:1"))
            assert standing(crowd) == [(QUEUED_MAX, RUNNING_MAX)] * len(PAIR), "what is in no commit has not happened"
        assert place.count_held() == len(PAIR)
        assert accepted(crowd.hand_in(*wishes(1, "wide", tenants=PAIR))) == 0
        crowd.let_go()
        workers = crowd.serve("worker", "worker,upkeep")
        crowd.await_ends()
        runs = crowd.runs()
        for server in workers:
            server.stop()
        assert accepted(crowd.hand_in(*wishes(2 * QUEUED_MAX, "wide", tenants=PAIR))) == len(PAIR) * QUEUED_MAX
    assert most_at_once(runs, by_tenant) == dict.fromkeys(PAIR, RUNNING_MAX)
    assert Counter(run.attempt for run in runs) == {
        1: len(PAIR) * (RUNNING_MAX + QUEUED_MAX),
        2: len(PAIR) * RUNNING_MAX,
    }


@on_each_engine
def test_queued_limits_are_exact_at_the_edge_of_several_processes(make_place: MakePlace, tmp_path: Path) -> None:
    url = make_place(tmp_path).url
    with opened_crowd(tmp_path, url, tenant_queued_max=QUEUED_MAX) as crowd:
        crowd.serve("api", "api", "api")
        crowd.let_in(*TENANTS)
        few = crowd.hand_in(*wishes(FEW_QUEUED_MAX + 6, "few"))
        assert accepted(few) == FEW_QUEUED_MAX * len(TENANTS)
        rest = crowd.hand_in(*wishes(QUEUED_MAX, "few", "wide"))
        assert accepted(rest) == (QUEUED_MAX - FEW_QUEUED_MAX) * len(TENANTS)
        assert queued(crowd) == dict.fromkeys(TENANTS, QUEUED_MAX)
        for job_id in list(crowd.jobs)[:PLACES_FREED]:
            crowd.cancel(job_id)
            wish, _ = crowd.jobs[job_id]
            assert accepted(crowd.hand_in(*[wish] * CLIENTS)) == 1, "one place is free, and everybody asks for it"
        assert queued(crowd) == dict.fromkeys(TENANTS, QUEUED_MAX)
