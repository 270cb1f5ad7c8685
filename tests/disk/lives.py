"""A life to record: jobs handed in, claimed and finished, with many checkpoints and restarts of the log."""

import itertools
from pathlib import Path

import apsw
import pytest

from coatcheck.stores.sqlite import writer as writer_module
from disk.edge import Client, open_edge
from disk.file_layer import OK, Act, Call, Watcher
from disk.power import Recording, recorded


async def live(client: Client, recording: Recording, rounds: int) -> None:
    """Hand in, claim and finish; what was told is noted at every answer."""
    for nth in range(rounds):
        await client.submit()
        recording.tell(client.told)
        if nth % 3 == 2:
            await client.work()
            recording.tell(client.told)


def fail_every(nth: int) -> Watcher:
    """Lets each nth sync fail."""
    syncs = itertools.count(1)

    def watch(call: Call) -> int:
        return apsw.SQLITE_IOERR_FSYNC if call.act is Act.SYNC and next(syncs) % nth == 0 else OK

    return watch


async def record(path: Path, patch: pytest.MonkeyPatch, fault: Watcher | None = None) -> Recording:
    """A life with many checkpoints and restarts of the log; `fault` may fail calls."""
    patch.setattr(writer_module, "CHECKPOINT_PAGES", 40)
    with recorded(path, patch) as (recording, _):
        async with open_edge(path) as client:
            recording.plan = fault or recording.plan
            await live(client, recording, 30)
            recording.plan = lambda call: OK
            steps = len(recording.steps)
        del recording.steps[steps:]
    return recording
