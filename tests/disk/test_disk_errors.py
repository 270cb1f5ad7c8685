"""EIO and ENOSPC at the n-th call: 503 or a job that is there, reads go on, and recovery needs no human."""

from pathlib import Path

import pytest

from disk.trials import Failure, FaultyDisk, try_disk

STRIDE = 7


async def count_calls(path: Path, tmp_path: Path) -> int:
    """How many calls a life on a good disk makes."""
    verdict = await try_disk(path, tmp_path / "good", FaultyDisk(Failure.EIO, 10**9, stays_broken=False))
    assert verdict.broken == []
    assert verdict.refusals == 0
    return verdict.calls


@pytest.mark.parametrize("stays_broken", [False, True], ids=["once", "until mended"])
@pytest.mark.parametrize("failure", Failure, ids=lambda failure: failure.name)
async def test_the_nth_call_fails(path: Path, tmp_path: Path, failure: Failure, stays_broken: bool) -> None:
    calls = await count_calls(path, tmp_path)
    assert calls > 150
    first = 1 + list(Failure).index(failure) * 2 + stays_broken
    refusals = 0
    for nth in range(first, calls + 1, STRIDE):
        disk = FaultyDisk(failure, nth, stays_broken)
        verdict = await try_disk(path, tmp_path / f"{nth}", disk)
        assert verdict.broken == [], f"call {nth}"
        assert verdict.has_failed, f"call {nth}"
        refusals += verdict.refusals
    assert refusals > 0


async def test_a_disk_that_fails_from_the_first_call_acknowledges_nothing(path: Path, tmp_path: Path) -> None:
    verdict = await try_disk(path, tmp_path / "dead", FaultyDisk(Failure.EIO, 1, stays_broken=True))
    assert verdict.broken == []
    assert verdict.refusals >= 6
