"""A real PgBouncer in transaction mode, where this machine has one."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from coatcheck.testing.waiting import wait_until_async
from harness.postgres_pooler import SOCKET

PROGRAM: Final = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_CONFIG = """
[databases]
{database} = host={server} dbname={database} user=postgres
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {size}
logfile = {folder}/log
"""


@contextlib.asynccontextmanager
async def bouncing(server_folder: Path, database: str, size: int) -> AsyncIterator[str]:
    """The DSN of a PgBouncer that lends `size` sessions of a database."""
    assert PROGRAM is not None, "the caller has looked"
    folder = Path(tempfile.mkdtemp(prefix="coatcheck-pgbouncer-"))
    config = folder / "pgbouncer.ini"
    config.write_text(_CONFIG.format(database=database, server=server_folder, folder=folder, size=size))
    user = []
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        user = ["-u", "nobody"]
    process = subprocess.Popen([PROGRAM, *user, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await wait_until_async((folder / SOCKET).exists, "PgBouncer to listen")
        yield f"postgresql://postgres@/{database}?host={folder}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)
