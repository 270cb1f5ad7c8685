"""Sweeps and batches: one that fails is made good, and one bad member holds nobody else up."""

import asyncio
import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import orjson
from msgspec import structs

from coatcheck.core.policy import Policies
from coatcheck.core.states import Status
from coatcheck.observe.metrics import Metrics
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import JobQuery, Prunable
from coatcheck.testing.conformance.world import DONE, TENANT, World, key_of, let_leases_run_out, rescue, stale
from coatcheck.testing.waiting import wait_until
from coatcheck.upkeep.deadlines import DueSweep, OverdueSweep
from coatcheck.upkeep.loop import Sweep
from coatcheck.upkeep.rescue import RescueSweep
from coatcheck.upkeep.retention import RetentionSweep
from contract.conftest import Connect, Serve

from .inside import look_inside
from .many import many_claims

FINAL_EVENTS = ("coatcheck.job.succeeded", "coatcheck.job.failed", "coatcheck.job.cancelled")


async def sweep_everything(world: World) -> None:
    """One turn of each sweep, with the leases of whoever is gone run out."""
    policies, metrics = Policies(world.policies), Metrics()
    await let_leases_run_out(world)
    sweeps: list[Sweep] = [
        RescueSweep(world.store, policies, metrics, world.clock),
        DueSweep(world.store, world.clock),
        OverdueSweep(world.store, policies, metrics, world.clock),
        *(RetentionSweep(what, world.store, metrics, world.clock) for what in Prunable),
    ]
    for sweep in sweeps:
        await sweep.run_once(500)


async def final_events(world: World) -> Counter[str]:
    """How many final events each job has in the outbox."""
    entries = await world.store.read_outbox(100_000)
    return Counter(entry.job_id for entry in entries if entry.type in FINAL_EVENTS)


async def test_bb_007_a_sweep_that_fails_half_way_is_made_good_by_the_next(world: World) -> None:
    """The store fails once in the middle of the first sweep and once at the commit of the second."""
    jobs = [claim.job for claim in await many_claims(world, 250, max_attempts=1)]
    world.faults.raise_at("reap-updated", apsw.IOError("disk I/O error"), nth=120)
    world.faults.raise_at("before-commit", apsw.IOError("disk I/O error"), nth=world.faults.count("before-commit") + 3)
    sweep = RescueSweep(world.store, Policies(world.policies), Metrics(), world.clock)
    failures = rescued = 0
    for _ in range(40):
        world.clock.advance(2)
        try:
            rescued += await sweep.run_once(500)
        except Exception:
            failures += 1
    assert (rescued, failures >= 1) == (250, True)
    assert {(await world.find(job.id)).status for job in jobs} == {Status.FAILED}
    assert await final_events(world) == dict.fromkeys([job.id for job in jobs], 1)


def test_bb_008_one_claim_that_cannot_start_keeps_nobody_from_it(serve: Serve, connect: Connect) -> None:
    """The input of one of ten fits no more after its author made the operation stricter."""
    client = connect(serve("--roles", "api", app_ref="bugbank.builds:before"))
    jobs = [client.submit("ledger", "seven" if number == 4 else number) for number in range(10)]
    serve("--roles", "worker", app_ref="bugbank.builds:after")
    ended = [client.final(job) for job in jobs]
    bad = ended.pop(4)
    assert {(job["status"], job["attempt"]) for job in ended} == {("succeeded", 1)}
    assert (bad["status"], bad["error"]["category"]) == ("failed", "invalid_input")
    assert bad["error"]["detail"]


async def test_bb_015_cleaning_up_changes_nothing_that_is_finished(world: World) -> None:
    count = 1000
    done = await asyncio.gather(*[world.finish(claim, DONE) for claim in await many_claims(world, count)])
    for _ in range(3):
        await sweep_everything(world)
    assert [await world.find(job.id) for job in done] == done
    assert await final_events(world) == dict.fromkeys([job.id for job in done], 1)


async def test_bb_099_two_jobs_of_one_key_both_go_on(world: World) -> None:
    """The key's window ended while its job waits for another try, so the key has two open jobs in one batch."""
    first = await world.start(key=key_of(world, window_s=10))
    world.clock.advance(11)
    second = await world.accept(key=key_of(world, window_s=10))
    await let_leases_run_out(world)
    others = await asyncio.gather(*(world.accept() for _ in range(8)))
    claims = await world.claim(10)
    assert {claim.job.id for claim in claims} == {first.job.id, second.id, *(job.id for job in others)}
    for claim in claims:
        assert (await world.finish(claim, DONE)).status is Status.SUCCEEDED
    page = await world.store.list_jobs(JobQuery(TENANT, 200, status=Status.RUNNING), world.now)
    assert not page.jobs
    assert await rescue(world) == 0


def test_bb_100_an_event_that_cannot_be_told_holds_nobody_up(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    channel = ("--events", f"file:{events}")
    first = serve(*channel, "--roles", "api,worker")
    client = connect(first)
    bad, *good = (client.final(client.submit("tasks", {"value": number})) for number in range(10))
    first.stop()
    with closing(apsw.Connection(str(first.store))) as connection:
        connection.execute("UPDATE outbox SET data = x'ff' WHERE job_id = ? AND type LIKE '%started'", (bad["id"],))
    again = serve(*channel)

    def told(job_id: str) -> list[str]:
        lines = events.read_text("utf-8").splitlines() if events.exists() else []
        return [event["type"] for event in map(orjson.loads, lines) if event["subject"] == job_id]

    wait_until(lambda: all(FINAL_EVENTS[0] in told(job["id"]) for job in good), "the others to be told", 20)
    assert told(bad["id"]) == ["coatcheck.job.accepted"], "what comes after the bad one waits, so the order holds"
    client = connect(again)
    seen = re.compile(r"^coatcheck_outbox_failures_total [1-9]", re.MULTILINE)
    wait_until(lambda: seen.search(client.get("/metrics").text) is not None, "the bad one to be counted")
    assert client.get(bad["status_url"]).json()["status"] == "succeeded"
    assert {row[0] for row in look_inside(first.store, "SELECT job_id FROM outbox")} == {bad["id"]}


async def test_bb_117_a_bad_end_among_many_makes_no_other_job_run_again(world: World) -> None:
    """Ten are claimed together and end in one commit; one of them under a lease that is not its own."""
    claims = await many_claims(world, 10)
    bad = claims[4]
    ends = [structs.replace(claim, lease=stale(claim.lease)) if claim is bad else claim for claim in claims]
    answers = await asyncio.gather(*(world.finish(claim, DONE) for claim in ends), return_exceptions=True)
    assert [type(answer) for answer in answers if isinstance(answer, BaseException)] == [LeaseLost]
    assert isinstance(answers[4], LeaseLost)
    assert await let_leases_run_out(world) == 1
    assert (await world.restart(bad.job.id)).job.attempt == 2
    assert await world.claim(10) == []
    others = [await world.find(claim.job.id) for claim in claims if claim is not bad]
    assert {(job.status, job.attempt) for job in others} == {(Status.SUCCEEDED, 1)}
