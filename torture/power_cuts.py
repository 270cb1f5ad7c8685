"""Power cut at random moments of a recorded life, with a disk that keeps, drops and tears unsynced writes."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from disk.edge import app, broken_promises
from disk.lives import fail_every, record
from disk.power import Cut, Recording
from torture.outcome import Outcome, Task

CUTS_EACH_LIFE = 200


def run(task: Task) -> Outcome:
    """`task.amount` cuts; in every second life some syncs fail and lose what they had to keep."""
    outcome = Outcome({"cuts": 0, "lives": 0})
    for life, first in enumerate(range(0, task.amount, CUTS_EACH_LIFE)):
        folder = task.folder / f"life-{life}"
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            asyncio.run(_live(task, outcome, folder, patch, min(CUTS_EACH_LIFE, task.amount - first)))
        outcome.figures["lives"] = life + 1
        shutil.rmtree(folder)
    outcome.figures["broken"] = len(outcome.faults)
    return outcome


async def _live(task: Task, outcome: Outcome, folder: Path, patch: pytest.MonkeyPatch, cuts: int) -> None:
    path = folder / "jobs.db"
    store = SqliteStore(SqliteConfig(path, app.name))
    await store.open()
    await store.close()
    life = int(outcome.figures["lives"])
    recording = await record(path, patch, fail_every(5) if life % 2 else None)
    chance = random.Random(task.seed + life)  # noqa: S311 - moments that can be chosen again
    for nth in range(cuts):
        how = list(Cut)[nth % len(Cut)]
        fault = await _cut(recording, folder / "cut", chance, how)
        outcome.faults += [f"life {life}, {how}, {words}" for words in fault]
        outcome.figures["cuts"] = int(outcome.figures["cuts"]) + 1
        task.advance(1)


async def _cut(recording: Recording, folder: Path, chance: random.Random, how: Cut) -> list[str]:
    at = chance.randrange(1, len(recording.steps) + 1)
    image, told = recording.cut(at, how, chance.getrandbits(32), folder)
    broken = [f"before step {at}: {fault}" for fault in await broken_promises(image, told)]
    shutil.rmtree(folder)
    return broken
