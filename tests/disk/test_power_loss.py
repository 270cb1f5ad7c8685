"""Loss of power: whatever the disk did with writes that were not synced, every acknowledged job is there."""

import random
from pathlib import Path

import apsw
import pytest

from coatcheck.stores.sqlite import connection as connection_module
from coatcheck.stores.sqlite import store as store_module
from coatcheck.stores.sqlite.commit_mark import CommitMark
from disk.edge import broken_promises
from disk.file_layer import OK, Act
from disk.lives import fail_every, record
from disk.power import Cut, Recording

CUTS_EACH = 45


async def lost_in(recording: Recording, folder: Path, how: Cut, count: int) -> list[str]:
    """What is broken on any of `count` disks, each cut at another moment."""
    chance = random.Random(f"{how}")  # noqa: S311 - the same moments each time
    broken = []
    for nth in range(count):
        at = chance.randrange(1, len(recording.steps) + 1)
        image, told = recording.cut(at, how, nth, folder / f"{how}-{nth}")
        broken += [f"cut {how} before step {at}: {fault}" for fault in await broken_promises(image, told)]
    return broken


@pytest.mark.parametrize("how", Cut)
async def test_every_acknowledged_job_survives(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Cut
) -> None:
    recording = await record(path, monkeypatch)
    acts = [step.call.act for step in recording.steps if step.call is not None and not step.call.is_log]
    assert acts.count(Act.SYNC) > 40, "the log was never moved into the file"
    assert await lost_in(recording, tmp_path, how, CUTS_EACH) == []


async def test_a_sync_that_failed_and_lost_what_it_had_to_keep(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = await record(path, monkeypatch, fail_every(5))
    assert any(step.code != OK for step in recording.steps)
    for how in (Cut.NONE, Cut.SOME, Cut.TORN):
        assert await lost_in(recording, tmp_path, how, 15) == []


@pytest.mark.parametrize("synchronous", ["normal", "off"])
async def test_this_test_sees_what_an_unsafe_setting_loses(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronous: str
) -> None:
    def open_unsafe(file: Path) -> apsw.Connection:
        opened = connection_module.open_writer(file)
        opened.pragma("synchronous", synchronous)
        return opened

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "open_writer", open_unsafe)
        # The mark would refuse the files that are shown to have lost something.
        patched.setattr(CommitMark, "write", lambda mark, commits: None)
        recording = await record(path, patched)
    broken = await lost_in(recording, tmp_path, Cut.NONE, 15)
    assert any("lost" in fault for fault in broken)
