"""The reasons not to open a file, each in one sentence, and the settings without which nothing is durable."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from coatcheck.store.errors import StoreRefused, StoreUnavailable
from coatcheck.stores.sqlite.config import SqliteConfig
from coatcheck.stores.sqlite.connection import file_system_of, open_reader, open_writer, refuse_damage
from coatcheck.stores.sqlite.schema import migrate
from coatcheck.stores.sqlite.statements import migrations
from coatcheck.stores.sqlite.store import SqliteStore


async def make_store(path: Path, app: str = "shop") -> None:
    store = SqliteStore(SqliteConfig(path, app))
    await store.open()
    await store.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_writer_is_durable_and_every_connection_plans_once(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "jobs.db")
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("wal_autocheckpoint") == 0
    assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    connection.execute("CREATE TABLE something (id)")
    with pytest.raises(apsw.ReadOnlyError):
        open_reader(tmp_path / "jobs.db").execute("DELETE FROM something")


async def test_another_app_is_refused(tmp_path: Path) -> None:
    await make_store(tmp_path / "jobs.db", "shop")
    with pytest.raises(StoreRefused, match="belongs to app 'shop', not to 'bank'"):
        await make_store(tmp_path / "jobs.db", "bank")


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await make_store(path)
    apsw.Connection(str(path)).pragma("user_version", 99)
    with pytest.raises(StoreRefused, match="schema 99, this build knows"):
        await make_store(path)


async def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    apsw.Connection(str(path)).execute("CREATE TABLE customer (id)")
    with pytest.raises(StoreRefused, match="something else"):
        await make_store(path)
    assert apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema").fetchall() == [("customer",)]


async def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="does not exist"):
        await make_store(tmp_path / "nowhere" / "jobs.db")


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"not a database at all, but long enough to look like one" * 100)
    with pytest.raises((StoreRefused, StoreUnavailable), match="damaged"):
        await make_store(path)


async def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await make_store(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for offset in range(4096, size, 4096):
            file.seek(offset + 2)
            file.write(b"\xff\xff\xff\xff")
    with pytest.raises((StoreRefused, StoreUnavailable), match="damaged"):
        await make_store(path)


async def test_a_refused_store_leaves_no_file_descriptor_open(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await make_store(path)
    before = open_files()
    for _ in range(3):
        with pytest.raises(StoreRefused):
            await make_store(path, "bank")
    await make_store(path)
    assert open_files() == before


def test_the_file_system_is_read_from_the_longest_mount_point(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"
        "2 1 0:5 / /srv/team\\040share rw - nfs4 server:/x rw\n"
        "3 2 8:2 / /srv/team\\040share/local rw - xfs /dev/sdb rw\n",
        encoding="utf-8",
    )
    assert file_system_of(Path("/srv/team share/jobs"), str(mounts)) == "nfs4"
    assert file_system_of(Path("/srv/team share/local/jobs"), str(mounts)) == "xfs"
    assert file_system_of(Path("/srv/team"), str(mounts)) == "ext4"
    assert file_system_of(Path("/"), str(tmp_path / "nothing")) is None


KILLED_MIGRATION = """
import os, signal, sys
from pathlib import Path
from coatcheck.stores.sqlite.connection import open_writer
from coatcheck.stores.sqlite.schema import migrate
connection = open_writer(Path(sys.argv[1]))
left = int(sys.argv[2])
def count(cursor, statement, bindings):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
connection.exec_trace = count
migrate(connection, Path(sys.argv[1]), "shop")
"""


def test_a_migration_killed_at_any_statement_resumes(tmp_path: Path) -> None:
    statements = sum(len(statements) for _, statements in migrations())
    kills = 0
    for nth in range(1, statements + 8, 3):
        path = tmp_path / f"{nth}.db"
        killed = subprocess.run([sys.executable, "-c", KILLED_MIGRATION, str(path), str(nth)], check=False)
        assert killed.returncode in {0, -signal.SIGKILL}
        kills += killed.returncode != 0
        connection = open_writer(path)
        migrate(connection, path, "shop")
        refuse_damage(connection, path)
        assert connection.pragma("user_version") == migrations()[-1][0]
    assert kills >= statements // 3
