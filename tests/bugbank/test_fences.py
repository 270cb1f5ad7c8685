"""Fences: whoever lost a job can write nothing to it any more, and what is finished stays as it is."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable
from uuid import uuid4

import pytest

from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Beat, Claim
from coatcheck.testing.conformance.world import BROKEN, DONE, FLAKY, LEASE_S, TENANT, World, let_leases_run_out
from coatcheck.testing.waiting import wait_until
from contract.conftest import Connect, Serve
from harness.stage import Stage

from .scale import scaled
from .second_rescuer import SecondRescuer

FINAL_EVENTS = ("coatcheck.job.succeeded", "coatcheck.job.failed", "coatcheck.job.cancelled")


async def test_bb_014_a_rescuer_never_overwrites_what_has_just_finished(world: World) -> None:
    """It has chosen the lease, then the attempt ends, then it writes."""
    async with SecondRescuer(world) as rescuer:
        for number in range(scaled(40, 500)):
            claim = await world.start()
            await rescuer.choose()
            done = await world.finish(claim, (DONE, BROKEN)[number % 2])
            assert await rescuer.write() == 0
            assert await world.find(claim.job.id) == done


async def test_bb_014_at_the_end_of_a_lease_one_of_the_two_wins(world: World) -> None:
    """Outcome and rescue at the same moment from two processes, in every order that chance gives them."""
    other = await world.another_store()
    policies = Policies(world.policies)
    finished: list[str] = []
    for number in range(scaled(60, 500)):
        claim = await world.start(max_attempts=1)
        for _ in range(5):
            assert await other.rescue_leases(policies, world.now, 10) == 0
            world.clock.advance(LEASE_S / 5)
        answers = await asyncio.gather(
            late(number % 7, world.finish(claim, DONE)),
            late(3, other.rescue_leases(policies, world.now, 10)),
            return_exceptions=True,
        )
        job = await world.find(claim.job.id)
        if isinstance(answers[0], LeaseLost):
            assert (job.status, answers[1]) == (Status.FAILED, 1)
        else:
            assert (job, answers[1]) == (answers[0], 0)
        assert [attempt.outcome for attempt in await world.store.list_attempts(TENANT, job.id)] in (
            ["succeeded"],
            ["worker_lost"],
        )
        finished.append(job.id)
    entries = await world.store.read_outbox(100_000)
    assert Counter(entry.job_id for entry in entries if entry.type in FINAL_EVENTS) == dict.fromkeys(finished, 1)


async def late(turns: int, verb: Awaitable[object]) -> object:
    """A verb that lets others go first this many times."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await verb


async def test_bb_016_the_old_owner_of_a_job_writes_nothing(world: World) -> None:
    old = await world.start()
    assert await let_leases_run_out(world) == 1
    new = await world.restart(old.job.id)
    before = await world.find(old.job.id), await attempts_of(world, old)
    for outcome in (FLAKY, BROKEN, DONE):
        with pytest.raises(LeaseLost):
            await world.finish(old, outcome)
    assert [str(answer) for answer in await world.store.extend_leases([Beat(old.lease)], world.now)] == ["lost"]
    assert (await world.find(old.job.id), await attempts_of(world, old)) == before
    assert (await world.finish(new, DONE)).status is Status.SUCCEEDED


async def attempts_of(world: World, claim: Claim) -> object:
    return await world.store.list_attempts(TENANT, claim.job.id)


def test_bb_017_no_second_job_runs_beside_one_that_was_given_up(serve: Serve, connect: Connect, stage: Stage) -> None:
    """The last attempt loses its lease while its handler goes on; its key still stands for that job."""
    client = connect(serve("--roles", "api,upkeep"))
    zombie = serve("--roles", "worker")
    key = uuid4().hex
    body = stage.task("wait", value="late")
    job = client.submit("single-try", body, Idempotency_Key=key)
    stage.wait_for_starts()
    zombie.signal(signal.SIGSTOP)
    try:
        failed = client.final(job)
        assert (failed["status"], failed["error"]["category"]) == ("failed", "worker_lost")
        again = client.post("single-try", body, Idempotency_Key=key)
        assert (again.status_code, again.json()["id"]) == (202, job["id"])
        assert again.headers["idempotent-replayed"] == "true"
    finally:
        zombie.signal(signal.SIGCONT)
    wait_until(lambda: bool(stage.ends), "the old worker to stop the handler", 15)
    stage.go()
    assert client.final(client.submit("tasks", {}))["status"] == "succeeded", "the old worker works on"
    assert client.job(job) == failed
    assert (stage.starts, stage.ends) == ([1], ["stopped True"])
