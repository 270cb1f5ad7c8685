"""Keys on every store: the same requests in the same order get the same answers."""

from pathlib import Path

from coatcheck.core.costs import OverBudget
from coatcheck.store.records import Accepted, Disposition, QueueFull, Replayed
from coatcheck.testing.conformance.world import BROKEN, World, key_of
from harness.postgres_factory import PostgresFactory
from harness.sqlite_factory import SqliteFactory

TEXTS = [
    "a",
    "A",
    "ä",
    "a\N{COMBINING DIAERESIS}",
    " a",
    "a ",
    "%",
    "_",
    "\\",
    "'",
    "1",
    "01",
    "job_~",
    "\N{OLD PERSIAN SIGN A}",
]
BODIES = ["f" * 64, "F" * 64, "e" * 64]


async def _answers(world: World) -> list[tuple[str, int]]:
    """What each request was answered with, and the how manieth job it is about."""
    jobs: list[str] = []

    def note(answer: Disposition) -> tuple[str, int]:
        assert not isinstance(answer, QueueFull | OverBudget), "nobody has a limit here"
        job_id = answer.job.id if isinstance(answer, Accepted | Replayed) else answer.job_id
        if job_id not in jobs:
            jobs.append(job_id)
        return type(answer).__name__, jobs.index(job_id)

    await world.reopen()
    told = []
    for passed_s in (0, 30, 60, 3000):
        world.clock.advance(passed_s)
        for text in TEXTS:
            for body in BODIES:
                submission = world.submission(key=key_of(world, text, body, window_s=60))
                told.append(note(await world.store.accept_job(submission)))
        for claim in await world.claim(slots=3):
            await world.finish(claim, BROKEN)
    await world.close()
    return told


async def test_bb_038_keys_mean_the_same_on_every_store(tmp_path: Path) -> None:
    sqlite = await _answers(World(SqliteFactory(tmp_path / "keys.db"), events=False))
    assert await _answers(World(PostgresFactory(), events=False)) == sqlite
    assert {name for name, _ in sqlite} == {"Accepted", "Replayed", "KeyConflict"}
