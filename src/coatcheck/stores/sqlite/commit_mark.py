"""The mark beside the file: the number of the last commit that somebody was told of.

SQLite takes a log that was damaged, cut or removed for the end of a crash, and goes on without the commits it held.
Every commit counts itself inside the database and is noted here once it is durable; a file with fewer commits than its
mark is not opened. The mark is not synced: after a loss of power it may be old, and an old mark only asks for less.
"""

import contextlib
import os
import zlib
from pathlib import Path

import apsw

from coatcheck.store.errors import StoreRefused
from coatcheck.stores.sqlite.rows import Row
from coatcheck.stores.sqlite.statements import sql

_DIGITS = 20


class CommitMark:
    """Read and written in the writer's turn only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(f"{path}-mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read(self) -> int:
        """The commits that must be there; 0 where nothing was noted or the note cannot be read."""
        text = os.pread(self._file, 64, 0)
        digits = text[:_DIGITS]
        return int(digits) if text == _note(digits) and digits.isdigit() else 0

    def write(self, commits: int) -> None:
        """Note a durable commit. Where that fails the older note stands, and nobody needs to know."""
        with contextlib.suppress(OSError):
            os.pwrite(self._file, _note(b"%0*d" % (_DIGITS, commits)), 0)

    def refuse_lost_commits(self, connection: apsw.Connection) -> None:
        """Refuse a file that holds fewer commits than were acknowledged.

        Raises:
            StoreRefused: commits are missing; the message says what to do.
        """
        noted, held = self.read(), _count_commits(connection)
        if held < noted:
            raise StoreRefused(
                f"store: {self._path} lacks the last {noted - held} of {noted} acknowledged commits (its log was"
                " damaged or removed, or an older copy was put in its place); restore the log, or remove"
                f" {self._path}-mark to go on without them."
            )

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def _note(digits: bytes) -> bytes:
    return b"%s %08x\n" % (digits, zlib.crc32(digits))


def _count_commits(connection: apsw.Connection) -> int:
    try:
        rows: list[Row] = connection.execute(sql("read_commits")).fetchall()
    except apsw.SQLError:
        # A file without tables: new, or with its tables in a log that is gone.
        return 0
    commits: int = rows[0][0] if rows else 0
    return commits
