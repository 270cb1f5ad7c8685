"""The whole service killed at random moments under load, started again, and every promise checked.

A scene is a store with its processes, clients and history. In each one everything, or one process of several, is killed
again and again while clients hand in work; then the service is left in peace and the checker looks at everything.
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults.kills import ALL, API, NOT_API
from faults.scene import Scene, opened_scene
from harness.server import Server
from pauses.stopped import let_time_pass
from torture.outcome import Outcome, Task

KILLS_EACH_SCENE = 10
ORDERS_EACH_KILL = 12
ALIVE_S_MAX = 0.8
PLANS = (
    ("work", "return"),
    ("work", "effect"),
    ("work", "raise", "effect"),
    ("doomed", "raise"),
    ("doomed", "fail"),
    ("work", "raise", "return"),
)


def run(task: Task) -> Outcome:
    """`task.amount` kills."""
    outcome = Outcome(dict.fromkeys(("kills", "scenes", "jobs", "acknowledged", "runs", "events", "broken"), 0))
    left = task.amount
    while left > 0:
        number = int(outcome.figures["scenes"])
        folder = task.folder / f"scene-{number}"
        folder.mkdir()
        kills = min(left, KILLS_EACH_SCENE)
        try:
            _add(outcome, _torture(folder, kills, random.Random(task.seed + number), task))  # noqa: S311
        except (AssertionError, TimeoutError) as error:
            outcome.faults.append(f"scene {number} (seed {task.seed + number}): {error}")
        outcome.figures["scenes"] = number + 1
        outcome.figures["kills"] = int(outcome.figures["kills"]) + kills
        left -= kills
    outcome.figures["broken"] = len(outcome.faults)
    return outcome


def _torture(folder: Path, kills: int, chance: random.Random, task: Task) -> dict[str, int]:
    with opened_scene(folder) as scene:
        roles = [ALL] if chance.random() < 0.5 else [API, NOT_API]
        servers = {role: scene.launch(role) for role in roles}
        scene.await_started(*servers.values())
        for _ in range(kills):
            victims = roles if chance.random() < 0.5 else [chance.choice(roles)]
            _kill_under_load(scene, [servers[role] for role in victims], chance)
            servers |= {role: scene.launch(role) for role in victims}
            scene.await_started(*(servers[role] for role in victims))
            task.advance(1)
        scene.gate.touch()
        scene.heal()
        scene.ask_again()
        scene.order("work", "return")
        evidence = scene.come_to_rest()
        return {
            "jobs": len(evidence.final_jobs),
            "acknowledged": sum(order.job is not None for order in scene.orders),
            "runs": len(evidence.runs),
            "events": len(evidence.events or ()),
        }


def _kill_under_load(scene: Scene, victims: list[Server], chance: random.Random) -> None:
    orders = [scene.want(*chance.choice(PLANS)) for _ in range(ORDERS_EACH_KILL)]
    with ThreadPoolExecutor(1) as clients:
        asking = clients.submit(scene.ask_at_once, orders)
        # The moment of a kill is not one that could be waited for.
        let_time_pass(chance.uniform(0, ALIVE_S_MAX))
        for victim in victims:
            victim.kill()
        asking.result()


def _add(outcome: Outcome, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        outcome.figures[name] = int(outcome.figures[name]) + count
