"""Bits that flipped and files that were cut: refused in one sentence and left as they are, or nothing was lost."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from coatcheck.store.errors import StoreRefused, StoreUnavailable
from disk.edge import Told, broken_promises, open_edge
from harness.server import Server

JOBS = 14
HEADER_BYTES = 32
FRAME_BYTES = 24 + 4096

Damage = Callable[[Path], None]


@pytest.fixture
async def killed(path: Path, tmp_path: Path) -> tuple[Path, Told]:
    """The files as SIGKILL leaves them: every job in the log, nothing moved into the database yet."""
    folder = tmp_path / "killed"
    folder.mkdir()
    async with open_edge(path) as client:
        for nth in range(JOBS):
            await client.submit()
            if nth % 3 == 2:
                await client.work()
        for name in ("jobs.db", "jobs.db-wal", "jobs.db-mark"):
            shutil.copyfile(path.with_name(name), folder / name)
        return folder / "jobs.db", client.told


def flip(file: Path, at: int, bit: int = 3) -> None:
    """Turn one bit around."""
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ (1 << bit)]))


def copied(original: Path, folder: Path) -> Path:
    shutil.copytree(original.parent, folder)
    return folder / original.name


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def mark_of(path: Path) -> Path:
    return path.with_name(path.name + "-mark")


def size_of(path: Path) -> int:
    return path.stat().st_size


def content_of(path: Path) -> dict[str, bytes]:
    """The files that hold something; SQLite makes an empty log where there was none."""
    files = (path, log_of(path), mark_of(path))
    return {file.name: file.read_bytes() for file in files if file.exists() and file.stat().st_size}


async def is_refused(path: Path, told: Told) -> bool:
    """Whether the file is refused and left alone. One that is opened must keep every promise."""
    before = content_of(path)
    words, broken = "", list[str]()
    try:
        broken = await broken_promises(path, told)
    except StoreRefused as refusal:
        words = str(refusal)
    assert broken == []
    if not words:
        return False
    assert words.startswith("store: ")
    assert "\n" not in words
    assert content_of(path) == before
    return True


def places_in(log: Path) -> Iterator[int]:
    """Every byte of the header, every field of some frames, and bytes of their pages."""
    frames = (log.stat().st_size - HEADER_BYTES) // FRAME_BYTES
    yield from range(0, HEADER_BYTES, 2)
    for frame in sorted({0, 1, frames // 2, frames - 2, frames - 1}):
        start = HEADER_BYTES + frame * FRAME_BYTES
        yield from (start + offset for offset in (1, 5, 9, 13, 17, 22, 24, 300, FRAME_BYTES - 1))


async def test_a_log_that_a_kill_left_is_opened(killed: tuple[Path, Told]) -> None:
    path, told = killed
    assert not await is_refused(path, told)


async def test_a_bit_that_flips_anywhere_in_the_log_is_noticed(killed: tuple[Path, Told], tmp_path: Path) -> None:
    path, told = killed
    for place in places_in(log_of(path)):
        own = copied(path, tmp_path / f"at-{place}")
        flip(log_of(own), place)
        # The count of checkpoints in the header may be anything, but its checksum covers it.
        assert await is_refused(own, told), f"byte {place}"


async def test_a_log_that_was_cut_is_noticed(killed: tuple[Path, Told], tmp_path: Path) -> None:
    path, told = killed
    size = log_of(path).stat().st_size
    for length in (0, 5, 31, 32, 33, FRAME_BYTES, size // 3, size - FRAME_BYTES, size - 1):
        own = copied(path, tmp_path / f"to-{length}")
        os.truncate(log_of(own), length)
        assert await is_refused(own, told), f"{length} bytes"


async def test_a_log_that_is_gone_is_noticed(killed: tuple[Path, Told]) -> None:
    path, told = killed
    log_of(path).unlink()
    assert await is_refused(path, told)
    mark_of(path).unlink()
    assert len(await broken_promises(path, told)) == JOBS, "who removes the mark accepts the loss"


async def test_without_a_mark_damage_before_the_last_two_commits_is_noticed(
    killed: tuple[Path, Told], tmp_path: Path
) -> None:
    path, told = killed
    mark_of(path).unlink()
    commits = commits_of(log_of(path))
    chance = random.Random(11)  # noqa: S311 - the same places each time
    # The frame behind the flipped one may have lost its tie to it, and with it count for nothing.
    until = HEADER_BYTES + (commits[-3] + 1) * FRAME_BYTES
    for nth in range(40):
        own = copied(path, tmp_path / f"{nth}")
        flip(log_of(own), chance.randrange(until), chance.randrange(8))
        with pytest.raises(StoreRefused, match="before its end"):
            await broken_promises(own, told)


def commits_of(log: Path) -> list[int]:
    """The numbers of the frames that end a commit."""
    content = log.read_bytes()
    starts = range(HEADER_BYTES, len(content), FRAME_BYTES)
    return [nth for nth, start in enumerate(starts) if content[start + 4 : start + 8] != bytes(4)]


async def test_a_log_without_its_database_is_noticed_and_kept(killed: tuple[Path, Told]) -> None:
    path, told = killed
    path.write_bytes(b"")
    assert await is_refused(path, told)
    path.unlink()
    assert await is_refused(path, told)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 30, b"rubbish", b"00000000000000000099 00000000\n"], ids=["empty", "zeros", "text", "sum"]
)
async def test_a_mark_that_cannot_be_read_asks_for_nothing(killed: tuple[Path, Told], content: bytes) -> None:
    path, told = killed
    mark_of(path).write_bytes(content)
    assert not await is_refused(path, told)
    assert not await is_refused(path, told)


async def test_an_older_copy_in_its_place_is_noticed(path: Path, killed: tuple[Path, Told], tmp_path: Path) -> None:
    old, told = killed
    assert not await is_refused(old, told)
    kept = tmp_path / "copy.db"
    shutil.copyfile(old, kept)
    async with open_edge(old) as client:
        assert await client.submit() == 202
    shutil.copyfile(kept, old)
    assert await is_refused(old, told)
    with pytest.raises(StoreRefused, match=r"lacks the last 1 of \d+ acknowledged commits"):
        await broken_promises(old, told)
    mark_of(old).unlink()
    assert not await is_refused(old, told)


async def test_a_log_that_another_tool_moved_into_the_database_is_missed_by_nobody(killed: tuple[Path, Told]) -> None:
    path, told = killed
    with apsw.Connection(str(path)) as other:
        assert other.execute("SELECT count(*) FROM job").get == JOBS
    other.close()
    assert not log_of(path).exists()
    assert not await is_refused(path, told)


async def test_a_server_ends_with_the_sentence(killed: tuple[Path, Told], tmp_path: Path) -> None:
    path, _ = killed
    server = Server(tmp_path)
    shutil.copytree(path.parent, tmp_path, dirs_exist_ok=True)
    (tmp_path / "jobs.db").rename(server.store)
    mark_of(tmp_path / "jobs.db").rename(mark_of(server.store))
    server.launch()
    try:
        assert server.ended(30) == 2
        assert "acknowledged commits (its log was damaged or removed" in " ".join(server.log.split())
    finally:
        server.kill()


async def test_a_database_that_was_cut_is_noticed(path: Path, tmp_path: Path) -> None:
    told = await lived(path)
    size = size_of(path)
    for length in (100, 4095, 4096, 5 * 4096, size // 2, size - 4096, size - 1):
        own = copied_alone(path, tmp_path / f"to-{length}")
        os.truncate(own, length)
        # The last byte alone may be one that nothing is stored in.
        assert await is_noticed(own, told) or length == size - 1, f"{length} bytes"


async def test_a_page_whose_order_is_damaged_is_noticed(path: Path, tmp_path: Path) -> None:
    told = await lived(path)
    noticed = 0
    pages = size_of(path) // 4096
    for page in range(1, pages):
        own = copied_alone(path, tmp_path / f"page-{page}")
        # The kind of the page, which says how to read the rest of it.
        flip(own, page * 4096, 2)
        noticed += await is_noticed(own, told)
    assert noticed == pages - 1


async def test_no_flipped_bit_in_the_database_ends_in_anything_but_a_refusal_or_a_503(
    path: Path, tmp_path: Path
) -> None:
    told = await lived(path)
    chance = random.Random(5)  # noqa: S311 - the same places each time
    noticed = 0
    for nth in range(80):
        own = copied_alone(path, tmp_path / f"{nth}")
        flip(own, chance.randrange(size_of(path)), chance.randrange(8))
        noticed += await is_noticed(own, told, may_alter_a_row=True)
    assert noticed > 0


async def lived(path: Path) -> Told:
    """A closed database with jobs in it, and what was told of them."""
    async with open_edge(path) as client:
        for _ in range(JOBS):
            await client.submit()
            await client.work()
        return client.told


def copied_alone(path: Path, folder: Path) -> Path:
    folder.mkdir()
    return Path(shutil.copyfile(path, folder / path.name))


async def is_noticed(path: Path, told: Told, may_alter_a_row: bool = False) -> bool:
    """Whether opening or reading was refused. SQLite has no checksum for the content of a row in the database."""
    try:
        broken = await broken_promises(path, told)
    except (StoreRefused, StoreUnavailable):
        return True
    assert may_alter_a_row or broken == []
    return False
