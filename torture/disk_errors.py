"""Every call that a short life makes on its files failed once, with EIO and with ENOSPC, for once and until mended."""

import asyncio
import logging
from pathlib import Path

from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.store import SqliteStore
from disk.edge import app
from disk.trials import Failure, FaultyDisk, try_disk
from torture.outcome import Outcome, Task


def run(task: Task) -> Outcome:
    """`task.amount` calls of each kind, from the first one on."""
    # The service tells of each failure in its log; here there are thousands, and wanted.
    logging.disable(logging.WARNING)
    try:
        return asyncio.run(_run(task))
    finally:
        logging.disable(logging.NOTSET)


async def _run(task: Task) -> Outcome:
    template = task.folder / "template.db"
    store = SqliteStore(SqliteConfig(template, app.name))
    await store.open()
    await store.close()
    outcome = Outcome({"trials": 0, "refused with 503": 0})
    for nth in range(1, task.amount + 1):
        for failure in Failure:
            for stays_broken in (False, True):
                disk = FaultyDisk(failure, nth, stays_broken)
                await _try_one(outcome, template, task.folder / "trial", disk)
        task.advance(1)
    outcome.figures["broken"] = len(outcome.faults)
    return outcome


async def _try_one(outcome: Outcome, template: Path, folder: Path, disk: FaultyDisk) -> None:
    verdict = await try_disk(template, folder, disk)
    if verdict.has_failed:
        outcome.figures["trials"] = int(outcome.figures["trials"]) + 1
        outcome.figures["refused with 503"] = int(outcome.figures["refused with 503"]) + verdict.refusals
    outcome.faults += [f"{disk.failure.name} at call {disk.nth}: {fault}" for fault in verdict.broken]
