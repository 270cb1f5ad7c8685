"""Fairness: a flood, a herd of workers and a crowd of idle ones leave everybody their turn and the store its rest."""

import asyncio
import itertools
import random
from datetime import datetime
from pathlib import Path

import pytest

from coatcheck.admission.directory import Directory
from coatcheck.core.job import InstantMs
from coatcheck.execution.claim_loop import ClaimLoop
from coatcheck.execution.held import Ledger
from coatcheck.execution.parts import WorkerParts, WorkerSettings
from coatcheck.execution.placement import Placement
from coatcheck.observe.metrics import Metrics
from coatcheck.store.clock import SystemClock
from coatcheck.store.records import Claim, ClaimRequest, Claims
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from coatcheck.testing.conformance.world import DONE, OPERATION, OTHER_OPERATION, World, key_of
from coatcheck.testing.waiting import wait_until, wait_until_async
from contract.conftest import Connect, Serve
from contract.test_serving_controls import command
from harness.apps import app
from harness.http import JsonObject
from harness.server import APP, FRAGILE
from harness.stage import Stage

from .scale import scaled

CLOCK = SystemClock()
POLL_S = 1.0
IDLE_WORKERS = 30
LOOK_S = 0.05


@pytest.mark.parametrize("is_spread", [False, True], ids=["one queue", "many queues"])
async def test_bb_107_a_flood_delays_a_trickle_by_one_turn(world: World, is_spread: bool) -> None:
    """Ten thousand of A's before ten of B's: for each of B's at most one of A's goes first, however A splits them."""
    operations = (OPERATION, OTHER_OPERATION) if is_spread else (OPERATION,)
    priorities = range(10) if is_spread else (5,)
    kinds = itertools.cycle(itertools.product(operations, priorities))
    flood = itertools.islice(kinds, scaled(2_000, 10_000))
    await asyncio.gather(*(world.accept(tenant="a", operation=one, priority=priority) for one, priority in flood))
    await asyncio.gather(*(world.accept(tenant="b", operation=OPERATION) for _ in range(10)))
    claimed: list[str] = []
    while claimed.count("b") < 10:
        claimed += [claim.job.tenant for claim in await world.claim(1)]
    assert len(claimed) <= 10 * 2 * len(operations), "operations take turns, and in each of them tenants do"


async def _waits_of_b(world: World, flood: int, seed: int = 107) -> list[float]:
    """How long each of B's jobs waits, in seconds, on four places; every job takes one second."""
    dice = random.Random(seed)  # noqa: S311 - the same story each time
    keyed = [key_of(world, f"flood-{n}") for n in range(flood)]
    await asyncio.gather(*(world.accept(tenant="a", priority=n % 10, key=key) for n, key in enumerate(keyed)))
    running: list[tuple[int, Claim]] = []
    handed_in: dict[str, int] = {}
    waits: list[float] = []
    due_at = world.now
    while len(waits) < 40:
        if due_at <= world.now and len(handed_in) < 40:
            handed_in[(await world.accept(tenant="b")).id] = world.now
            due_at += dice.randrange(100, 1500)
        for ended_at, claim in [each for each in running if each[0] <= world.now]:
            await world.finish(claim, DONE)
            running.remove((ended_at, claim))
        if len(running) < 4:
            for claim in await world.claim(4 - len(running)):
                running.append((world.now + 1000, claim))
                if claim.job.tenant == "b":
                    waits.append((world.now - handed_in[claim.job.id]) / 1000)
        world.clock.advance(LOOK_S)
    for _, claim in running:
        await world.finish(claim, DONE)
    return sorted(waits)


async def test_bb_107_beside_a_flood_one_waits_twice_as_long_as_alone_and_a_job_more_at_most(world: World) -> None:
    """However many keys and priorities the flood has: they are its own."""
    alone = await _waits_of_b(world, 0)
    beside = await _waits_of_b(world, scaled(1_000, 10_000))
    p95 = len(alone) * 95 // 100
    assert beside[p95] <= 2 * alone[p95] + 1.0 + LOOK_S


def test_bb_107_two_tenants_over_http_take_turns(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    settings = FRAGILE | {"auth": "gateway", "gateway_networks": "127.0.0.0/8"}
    client = connect(serve("--roles", "api,upkeep", settings=settings))
    for tenant in ("a", "b"):
        command(tmp_path, "tenants", "add", tenant)

    def hand_in(tenant: str) -> JsonObject:
        return client.submit("one-by-one", {}, X_Consumer_Username=tenant)

    wait_until(lambda: client.post("anything", 1, X_Consumer_Username="b").status_code == 202, "b to be known")
    flood = [hand_in("a") for _ in range(scaled(60, 1_000))]
    trickle = [hand_in("b") for _ in range(5)]
    serve("--roles", "worker", settings=settings)

    def started(job: JsonObject, tenant: str) -> str | None:
        seen = client.get(job["status_url"], X_Consumer_Username=tenant).json()["started_at"]
        assert seen is None or isinstance(seen, str)
        return seen

    wait_until(lambda: all(started(job, "b") for job in trickle), "b's jobs to start")
    last = max(started(job, "b") or "" for job in trickle)
    before = sum((started(job, "a") or "~") < last for job in flood)
    assert before <= len(trickle) + 1, "for each of b's jobs one of a's goes first, and one may run already"


def test_bb_109_due_work_is_in_time_after_all_workers_restart(serve: Serve, connect: Connect, stage: Stage) -> None:
    client = connect(serve("--roles", "api,upkeep", settings=FRAGILE | {"upkeep_interval_s": str(POLL_S)}))
    before = [client.submit("tasks", stage.task("return"), Job_Start_After="1") for _ in range(20)]
    for worker in [serve("--roles", "worker") for _ in range(scaled(1, 15))]:
        worker.stop()
    for _ in range(scaled(2, 15)):
        serve("--roles", "worker")
    later = [client.submit("tasks", stage.task("return"), Job_Start_After="1.5") for _ in range(20)]
    assert {client.final(job)["status"] for job in before} == {"succeeded"}
    for job in later:
        done = client.final(job)
        late = datetime.fromisoformat(done["started_at"]) - datetime.fromisoformat(job["available_at"])
        assert 0 <= late.total_seconds() <= 2 * POLL_S
    assert len(stage.starts) == 40


class CountingStore(SqliteStore):
    """Counts the questions of workers."""

    asked = 0

    async def claim_ready(self, request: ClaimRequest, now: InstantMs) -> Claims:
        self.asked += 1
        return await super().claim_ready(request, now)


class EveryPlaceFree(Placement):
    """A worker with nothing to do, and no runners."""

    def __init__(self) -> None: ...

    @property
    def free_shared(self) -> int:
        return 10

    @property
    def free_solo(self) -> int:
        return 2


async def test_bb_110_idle_workers_ask_once_a_second_each(tmp_path: Path) -> None:
    """Two questions a poll, one for each kind of place; and a hint costs one more, not a storm."""
    store = CountingStore(SqliteConfig(tmp_path / "store.db", app.name))
    await store.open()
    parts = WorkerParts(store, app, APP, WorkerSettings(poll_s=POLL_S), Metrics(), CLOCK, Directory(store, CLOCK, {}))
    loops = [ClaimLoop(parts, f"worker-{number}", Ledger(), EveryPlaceFree(), print) for number in range(IDLE_WORKERS)]
    tasks = [asyncio.create_task(loop.run()) for loop in loops]
    begun_s = CLOCK.monotonic_s()
    seconds = scaled(3, 20)
    await wait_until_async(lambda: CLOCK.monotonic_s() - begun_s >= seconds, "time to pass", seconds + 10)
    took_s = CLOCK.monotonic_s() - begun_s
    asked = store.asked
    for loop in loops:
        loop.stop()
    await asyncio.gather(*tasks)
    await store.close()
    assert asked <= IDLE_WORKERS * 2 * (1 + took_s / (0.8 * POLL_S))
    assert asked >= IDLE_WORKERS * 2 * (took_s / (1.3 * POLL_S) - 1)
