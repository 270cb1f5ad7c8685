"""What handlers spend: counted for the job in all its attempts, and the end of a job that spends too much."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from execution_handlers import app
from execution_world import ExecutionWorld, make_worker, open_store, running_world
from flaky_store import FlakyStore

from coatcheck.core.costs import BUDGET, DEFAULT_WINDOW_S, Charge, window_of
from coatcheck.core.errors import ErrorCategory
from coatcheck.core.job import JobRecord
from coatcheck.core.quotas import ALL, EACH
from coatcheck.core.states import Status
from coatcheck.observe.metrics import Metrics
from coatcheck.testing.faults import FaultPoints
from coatcheck.testing.waiting import wait_until_async


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[ExecutionWorld]:
    async with running_world(tmp_path) as world:
        yield world


def assert_overspent(job: JobRecord, kind: str, most: str) -> None:
    assert job.status is Status.FAILED
    assert job.error is not None
    assert (job.error.category, job.error.code) == (ErrorCategory.LIMIT_EXCEEDED, "spend-max")
    assert job.error.detail == f"The work has spent more of {kind!r} than it may: this job may spend {most}."
    assert job.dead_lettered_at is not None


async def test_a_handler_is_told_what_is_left_over_all_attempts(world: ExecutionWorld) -> None:
    assert await world.result(await world.submit("spend", 1)) == [1, None]
    assert world.metrics.read("spent", operation="spend", kind="calls") == 2
    assert world.metrics.read("spent", operation="spend", kind="other") == 0.25


async def test_a_job_that_outspends_its_cap_fails_and_is_not_tried_again(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("spend", 2))
    assert_overspent(job, "calls", "3")
    assert world.marks("spent") == ["1"]
    assert await world.outcomes(job.id) == ["failed", "failed"]


async def test_a_job_that_outspends_its_cap_in_its_first_attempt_has_no_other(world: ExecutionWorld) -> None:
    job = await world.final(await world.submit("spend", 4))
    assert_overspent(job, "calls", "3")
    assert job.attempt == 1
    assert world.marks("spent") == []


@pytest.mark.parametrize("number", [2, 3])
async def test_a_def_handler_spends_as_well(world: ExecutionWorld, number: int) -> None:
    job_id = await world.submit("spend-in-thread", number)
    if number == 2:
        assert await world.result(job_id) == [0.5, 0]
    else:
        assert_overspent(await world.final(job_id), "cost", "2.5")


async def test_spends_at_once_are_each_counted_once(world: ExecutionWorld) -> None:
    assert await world.result(await world.submit("spend-at-once", 40)) == list(range(40))
    assert_overspent(await world.final(await world.submit("spend-at-once", 41)), "calls", "40")


async def test_a_handler_that_takes_no_notice_is_fenced_off(world: ExecutionWorld) -> None:
    assert_overspent(await world.final(await world.submit("spend-deaf")), "calls", "0")


async def test_what_was_spent_before_a_crash_is_spent(world: ExecutionWorld) -> None:
    assert await world.result(await world.submit("spend-and-crash")) == 0


async def test_a_spend_waits_for_a_store_that_is_away_and_is_counted_once(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    flaky = FlakyStore(store)
    worker = make_worker(store, Metrics(), in_front=flaky)
    world = ExecutionWorld(store, worker, Metrics(), tmp_path)
    flaky.refusals["spend"] = 3
    try:
        await worker.start()
        assert await world.result(await world.submit("spend", 1)) == [1, None]
        assert flaky.refusals["spend"] == 0
    finally:
        await worker.stop()
        await store.close()


async def test_a_spend_that_cannot_be_stored_costs_the_attempt_its_lease(tmp_path: Path) -> None:
    faults = FaultPoints()
    faults.raise_at("spent-before-answer", RuntimeError("broken"))
    async with running_world(tmp_path, fault_point=faults) as world:
        job_id = await world.submit("spend-in-thread", 1)
        lost = partial(world.metrics.read, "leases_lost", operation="spend-in-thread")
        await wait_until_async(lambda: lost() == 1, "the lease is given up")
        assert (await world.find(job_id)).status is Status.RUNNING


def test_the_declared_kinds_are_those_of_the_metric() -> None:
    policy = app.policies.of("spend")
    assert [policy.names_kind(kind) for kind in ("calls", "cost", "tokens")] == [True, True, False]


@pytest.mark.parametrize("operation", [ALL, "spend-at-once"])
async def test_a_job_that_outspends_its_tenant_s_budget_fails(tmp_path: Path, operation: str) -> None:
    async with running_world(tmp_path, limits={(f"{BUDGET}calls", EACH, operation): 5.0}) as world:
        assert await world.result(await world.submit("spend-at-once", 4)) == [1, 2, 3, 4]
        job = await world.final(await world.submit("spend-at-once", 2))
        assert job.error is not None
        assert (job.error.category, job.error.code) == (ErrorCategory.LIMIT_EXCEEDED, "budget-exceeded")
        where = "" if operation == ALL else " in 'spend-at-once'"
        assert job.error.detail == (
            f"The work has spent more of 'calls' than it may: its tenant's budget{where} of 5 is used up."
        )


async def test_what_a_succeeded_job_cost_is_measured(world: ExecutionWorld) -> None:
    window = window_of(world.clock.now(), DEFAULT_WINDOW_S)
    await world.result(await world.submit("spend", 1, charges=(Charge("calls", 7_000_000, window),)))
    costs = partial(world.metrics.read, "cost_completed", operation="spend")
    await wait_until_async(lambda: costs(kind="other") == 0.25, "the costs are counted")
    assert costs(kind="calls") == 9
