"""PostgreSQL stopped every few seconds under load, in good order and as by a crash, and every promise checked.

Between the stops sessions are ended by the server, and workers are killed. The API is never started again: it has to
find the database each time. A scene has a database, processes, clients and a history; the server is one for all.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until
from faults.kills import API, NOT_API
from faults.place_postgres import PostgresPlace
from faults.scene import RECOVERY_S_MAX, START_S, Scene, opened_scene
from harness.postgres_server import PostgresServer, StopMode
from harness.server import Server
from pauses.stopped import let_time_pass
from torture.outcome import Outcome, Task
from torture.restart_clients import Customer
from torture.stack_kills import PLANS

JOBS_EACH_SCENE = 1_000
CUSTOMERS = 4
WORKERS = 2
STOP_EVERY_S = (1.0, 5.0)
DOWN_S_MAX = 1.0
RESTARTS_MIN = 2
ENDED_SHARE = 0.5
KILLED_SHARE = 0.4
CLOCK = SystemClock()

_END_SESSIONS = f"""
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < {ENDED_SHARE}
"""  # noqa: S608 - written above
_COUNTED = ("jobs", "acknowledged", "asked again", "fast stops", "immediate stops", "sessions ended", "workers killed")
_KEPT = ("runs", "events", "scenes")


def run(task: Task) -> Outcome:
    """`task.amount` jobs."""
    outcome = Outcome(dict.fromkeys((*_COUNTED, *_KEPT), 0))
    slowest_s = 0.0
    server = PostgresServer()
    try:
        server.start()
        for number, first in enumerate(range(0, task.amount, JOBS_EACH_SCENE)):
            seed = task.seed + number
            jobs = min(JOBS_EACH_SCENE, task.amount - first)
            storm = Storm(server, random.Random(seed), Counter())  # noqa: S311 - stops that can be made again
            folder = task.folder / f"scene-{number}"
            folder.mkdir()
            try:
                slowest_s = max(slowest_s, _torture(folder, jobs, storm))
            except (AssertionError, TimeoutError) as error:
                outcome.faults.append(f"scene {number} (seed {seed}): {error}")
            storm.made["scenes"] += 1
            outcome.figures |= {name: int(outcome.figures[name]) + count for name, count in storm.made.items()}
            task.advance(jobs)
    finally:
        server.remove()
    outcome.figures |= {"slowest recovery": f"{slowest_s:.1f} s", "broken": len(outcome.faults)}
    return outcome


@dataclass
class Storm:
    """What is done to one scene, and how often it was done."""

    server: PostgresServer
    chance: random.Random
    made: "Counter[str]"

    def blow(self, scene: Scene, workers: list[Server], asking: "Sequence[Future[None]]") -> None:
        """Stop and start until the clients have brought in everything. In the end the database runs."""
        modes: tuple[StopMode, ...] = ("fast", "immediate")
        for mode in itertools.cycle(modes):
            let_time_pass(self.chance.uniform(*STOP_EVERY_S))
            if self.chance.random() < ENDED_SHARE:
                ((ended,),) = asyncio.run(self.server.execute(_END_SESSIONS))
                self.made["sessions ended"] += ended
            if self.chance.random() < KILLED_SHARE:
                self.chance.choice(workers).kill()
                self.made["workers killed"] += 1
            self.server.stop(mode)
            self.made[f"{mode} stops"] += 1
            let_time_pass(self.chance.uniform(0, DOWN_S_MAX))
            self.server.start()
            revive(scene, workers)
            if all(each.done() for each in asking) and self.made["immediate stops"] * 2 >= RESTARTS_MIN:
                return


def revive(scene: Scene, workers: list[Server]) -> None:
    """Start those anew that were killed, or that did not find the database when they began."""
    for place, worker in enumerate(workers):
        if not worker.is_running:
            workers[place] = scene.launch(NOT_API)


def settle(scene: Scene, workers: list[Server]) -> None:
    """Wait until every worker serves. One that found no database when it began has ended, and is started once more."""
    for worker in workers:
        wait_until(partial(has_begun, worker), "a worker to start or to give up", START_S)
    revive(scene, workers)
    scene.await_started(*workers)


def has_begun(worker: Server) -> bool:
    """Whether it has started, or ended before."""
    return bool(worker.log_lines("started")) or not worker.is_running


def _torture(folder: Path, jobs: int, storm: Storm) -> float:
    """Returns how many seconds after the last start of the database a new job was done."""
    with opened_scene(folder, PostgresPlace(storm.server)) as scene, ThreadPoolExecutor(CUSTOMERS) as pool:
        api, *workers = (scene.launch(roles) for roles in (API, *[NOT_API] * WORKERS))
        scene.await_started(*workers, api)
        orders = [scene.want(*storm.chance.choice(PLANS)) for _ in range(jobs)]
        customers = [
            Customer(scene, number, orders[number::CUSTOMERS], random.Random(storm.chance.random()))  # noqa: S311
            for number in range(CUSTOMERS)
        ]
        asking = [pool.submit(customer.work) for customer in customers]
        storm.blow(scene, workers, asking)
        recovered_s = _recover(scene, workers, storm.chance)
        for each in asking:
            each.result()
        assert api.is_running, f"the API ended: {api.log[-2000:]}"
        errors = [line["event"] for server in scene.servers for line in server.log_lines() if line["level"] == "error"]
        assert not errors, f"the processes tell of faults of their own: {sorted(set(errors))}"
        evidence = scene.come_to_rest()
        storm.made["jobs"] += len(evidence.final_jobs)
        storm.made["acknowledged"] += sum(order.job is not None for order in scene.orders)
        storm.made["asked again"] += sum(customer.asked_again for customer in customers)
        storm.made["runs"] += len(evidence.runs)
        storm.made["events"] += len(evidence.events or ())
        return recovered_s


def _recover(scene: Scene, workers: list[Server], chance: random.Random) -> float:
    began_s = CLOCK.monotonic_s()
    settle(scene, workers)
    scene.heal()
    order = scene.want("work", "return")
    # Looking back, it might cancel the very job whose end is waited for.
    Customer(scene, CUSTOMERS, [order], chance, looks_back=0.0).work()
    scene.until(order, "succeeded")
    took_s = CLOCK.monotonic_s() - began_s
    assert took_s <= RECOVERY_S_MAX, f"{took_s:.1f} s from the last start of the database to the end of a new job"
    return took_s
