"""Is what SQLite leaves of the log all that was committed?

SQLite reads a log up to the first frame whose checksum fails and takes that for the end. After a crash it is: only the
last transaction was not yet synced. But frames behind it that continue each other over two commits were written after
a sync of everything before them, so that what lies in between is damage, and acknowledged commits would be dropped.
"""

import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import apsw

from coatcheck.store.errors import StoreRefused

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_BIG_ENDIAN_MAGIC = 0x377F0683
_LITTLE_ENDIAN_MAGIC = 0x377F0682
_WORD = 0xFFFFFFFF

Checksum: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """One page in the log. Its checksum continues that of the frame before it; `salts` name the log's generation."""

    head: bytes
    page: bytes

    @property
    def salts(self) -> bytes:
        return self.head[8:16]

    @property
    def checksum(self) -> Checksum:
        return _stored(self.head[16:24])

    @property
    def is_commit(self) -> bool:
        return self.head[4:8] != bytes(4)

    def continues(self, before: Checksum, order: str) -> bool:
        """Whether this frame was written next after the one with that checksum."""
        return add_checksum(add_checksum(before, self.head[:8], order), self.page, order) == self.checksum


def refuse_orphaned_log(path: Path) -> None:
    """Refuse a log without its database, before SQLite sees them: it would remove the log.

    Raises:
        StoreRefused: the database is gone or empty, and its log is not.
    """
    if _size(path) == 0 and _size(_log_of(path)) > 0:
        raise StoreRefused(f"store: {path} is gone and its log is not; restore both files from a backup.")


def refuse_lost_log(connection: apsw.Connection, path: Path) -> None:
    """Refuse a log that SQLite would cut short before commits which were acknowledged. Nothing may be written before.

    Raises:
        StoreRefused: the log is damaged.
    """
    frames_used, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    page_size: int = connection.pragma("page_size")
    try:
        log = os.open(_log_of(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_cut_short = _has_commits_beyond(log, max(0, frames_used), page_size)
    finally:
        os.close(log)
    if is_cut_short:
        raise StoreRefused(
            f"store: {_log_of(path)} is damaged before its end, and acknowledged commits would be lost; restore both"
            " files from a backup, they were not changed."
        )


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _has_commits_beyond(log: int, frames_used: int, page_size: int) -> bool:
    """Whether the frames SQLite does not use hold an unbroken run with two commits."""
    header = os.pread(log, HEADER_BYTES, 0)
    order = _byte_order(header)
    is_whole = len(header) == HEADER_BYTES and add_checksum((0, 0), header[:24], order) == _stored(header[24:32])
    salts = header[16:24] if is_whole else None
    before: Checksum | None = None
    commits = 0
    for frame in _frames(log, frames_used, page_size, salts):
        if frame is None:
            before, commits = None, 0
            continue
        if before is None or not frame.continues(before, order):
            commits = 0
        elif frame.is_commit:
            commits += 1
            if commits == 2:
                return True
        before = frame.checksum
    return False


def _frames(log: int, skip: int, page_size: int, salts: bytes | None) -> Iterator[Frame | None]:
    """The frames behind the first `skip` ones; None for one of another generation. The first names it if need be."""
    offset = HEADER_BYTES + skip * (FRAME_HEADER_BYTES + page_size)
    while len(head := os.pread(log, FRAME_HEADER_BYTES, offset)) == FRAME_HEADER_BYTES:
        salts = head[8:16] if salts is None else salts
        if head[8:16] != salts:
            yield None
        else:
            page = os.pread(log, page_size, offset + FRAME_HEADER_BYTES)
            if len(page) < page_size:
                return
            yield Frame(head, page)
        offset += FRAME_HEADER_BYTES + page_size


def add_checksum(before: Checksum, content: bytes, order: str) -> Checksum:
    """The running checksum of SQLite's file format, section 4.2; `content` is a multiple of 8 bytes."""
    first, second = before
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & _WORD
        second = (second + odd + first) & _WORD
    return first, second


def _byte_order(header: bytes) -> str:
    magic = int.from_bytes(header[:4], "big")
    if magic == _BIG_ENDIAN_MAGIC or (magic != _LITTLE_ENDIAN_MAGIC and sys.byteorder == "big"):
        return ">"
    return "<"


def _stored(checksum: bytes) -> Checksum:
    first, second = struct.unpack(">2I", checksum)
    return first, second
