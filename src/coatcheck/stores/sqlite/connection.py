"""Opening the file: settings every connection has, and the reasons not to open it at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from coatcheck.observe.memory import memory_bytes_max
from coatcheck.store.errors import StoreRefused, StoreUnavailable

BUSY_TIMEOUT_MS = 5_000
STATEMENTS_KEPT = 600
READER_BUSY_TIMEOUT_MS = 250
CACHE_KIB_MAX = 16 * 1024
CACHE_PART_OF_MEMORY = 16
QUICK_CHECK_BYTES_MAX = 256 * 1024 * 1024
OLDEST_SQLITE = (3, 51, 3)
HOT_TABLES = ("ready", "scheduled", "lease", "turn", "outbox", "meta")
NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs", "gpfs"}
    | {"lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs"}
)

_UNAVAILABLE = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
# Our statements fit our schema: one that cannot be prepared meets a schema that something else has altered.
_DAMAGED = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
FAILURES = (OSError, *_UNAVAILABLE, *_DAMAGED)
"""What SQLite and the file system raise when the store, rather than one statement, has failed."""


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    """One of FAILURES in words that name the file."""
    if isinstance(error, OSError):
        return StoreUnavailable(f"{path}: {error.strerror}")
    damaged = " is damaged" if isinstance(error, _DAMAGED) else ""
    return StoreUnavailable(f"{path}{damaged}: {error}")


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn FAILURES into StoreUnavailable."""
    try:
        yield
    except FAILURES as error:
        raise unavailable(path, error) from error


def is_unavailable(error: Exception) -> bool:
    """Whether this failure is the store's (disk, file, lock) rather than one statement's."""
    return isinstance(error, (*_UNAVAILABLE, *_DAMAGED))


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=STATEMENTS_KEPT)
    # Without this guarantee SQLite plans a statement anew whenever a bound value changes: 70 µs instead of 4 µs to
    # find a job.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def open_writer(path: Path) -> apsw.Connection:
    """A connection that may write: WAL, synced at every commit, checkpointed only by its owner."""
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("foreign_keys", True)
    # What a statement for many rows keeps to undo itself would else be written to a file in /tmp, page by page.
    connection.pragma("temp_store", "memory")
    # Negative numbers count KiB. Where memory is short, the cache must not be what takes it; and a commit that split a
    # page walks through all of it, so that more of it makes commits slower, not faster.
    connection.pragma("cache_size", -min(CACHE_KIB_MAX, memory_bytes_max() // 1024 // CACHE_PART_OF_MEMORY))
    if connection.pragma("journal_mode") != "wal" or connection.pragma("synchronous") != 2:
        raise StoreRefused(f"{path} cannot be kept durable: SQLite did not accept WAL with synchronous=FULL here.")
    return connection


def open_reader(path: Path) -> apsw.Connection:
    """A connection that can only read, and gives up soon: it may be used on the event loop."""
    connection = _connect(path, apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(READER_BUSY_TIMEOUT_MS)
    connection.pragma("query_only", True)
    # The first read opens the log and its index; later there may be no file descriptor left for them.
    connection.pragma("user_version")
    return connection


def open_alone(path: Path) -> apsw.Connection:
    """A connection to a store's file that nobody else has open, and nobody else can open until it is closed.

    Raises:
        StoreRefused: another connection has it open.
    """
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        # Asked for before the log is looked at, it is a lock on the file, which every open connection shares.
        connection.pragma("locking_mode", "exclusive")
        connection.pragma("synchronous", "full")
        connection.pragma("wal_autocheckpoint", 0)
        connection.pragma("temp_store", "memory")
        connection.pragma("user_version")
    except apsw.BusyError as error:
        connection.close()
        raise StoreRefused(
            f"store: {path} is in use; stop every process of the store, and whatever else has it open."
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_unsafe_place(path: Path) -> None:
    """Refuse SQLite builds and file systems on which a commit is not safe.

    Raises:
        StoreRefused: SQLite is older than the repair of its WAL-reset fault, the path is a folder or in none, or it
            lies on a network file system, where SQLite's locks and syncs do not hold.
    """
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SQLITE:
        raise StoreRefused(
            f"SQLite {apsw.sqlite_lib_version()} can damage WAL files; install an apsw of 3.51.3 or later."
        )
    if path.is_dir():
        raise StoreRefused(f"store: {path} is a folder; name a file in it.")
    folder = path.parent
    if not folder.is_dir():
        raise StoreRefused(f"store: the folder {folder} does not exist; make it, or name another file.")
    file_system = file_system_of(folder.resolve())
    if file_system in NETWORK_FILE_SYSTEMS:
        raise StoreRefused(f"store: {path} lies on a network file system ({file_system}); SQLite needs a local disk.")


def file_system_of(folder: Path, mounts: str = "/proc/self/mountinfo") -> str | None:
    """The type of the file system that holds an absolute folder, or None where the system does not tell."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    best: tuple[int, str] = (-1, "")
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount_point = Path(fields.split(" ")[4].replace("\\040", " "))
        if (folder == mount_point or mount_point in folder.parents) and len(mount_point.parts) >= best[0]:
            best = (len(mount_point.parts), rest.split(" ")[0])
    return best[1] or None


def refuse_damage(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that SQLite finds damaged. Beyond 256 MiB only the hot tables are read through.

    Raises:
        StoreRefused: the file is not a database or is damaged.
    """
    try:
        size = connection.pragma("page_count") * connection.pragma("page_size")
        if size <= QUICK_CHECK_BYTES_MAX:
            faults = [connection.pragma("quick_check", 1)]
        else:
            faults = [connection.pragma("quick_check", table) for table in HOT_TABLES]
    except _DAMAGED as error:
        raise StoreRefused(_damaged(path, str(error))) from error
    for fault in faults:
        if fault != "ok":
            raise StoreRefused(_damaged(path, str(fault).splitlines()[0]))


def _damaged(path: Path, words: str) -> str:
    return f"store: {path} is damaged ({words}); restore it from a backup, it was not changed."
