"""Serves the merchant's site on this machine for as long as a `with` block lasts."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import httpx

READY_S_MAX = 60.0
STOP_S_MAX = 45.0
EXAMPLES = Path(__file__).resolve().parents[1]


class SiteFailed(Exception):
    """The site did not start; the message says so in one sentence."""


@contextlib.contextmanager
def local_site(folder: Path, database: str, log: BinaryIO) -> Iterator[str]:
    """Run the site until the block ends; gives its URL.

    Raises:
        SiteFailed: it does not answer within a minute.
    """
    port = _free_port()
    command = [sys.executable, "-m", "uvicorn", "report_jobs.site:site", "--port", f"{port}"]
    process = subprocess.Popen(  # noqa: S603 - every word of the command is ours
        command, cwd=folder, env=_environment(database), stdout=log, stderr=log
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process)
        yield url
    finally:
        _stop(process)


def _free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _environment(database: str) -> dict[str, str]:
    """This process's variables, without settings that are meant for another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    paths = [EXAMPLES, *(Path(path).resolve() for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path)]
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "REPORT_JOBS_DATABASE": database}


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    give_up_at = time.monotonic() + READY_S_MAX
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            raise SiteFailed(f"The site stopped with exit code {process.returncode} before it was ready.")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/jobs/readyz", timeout=2).is_success:
                return
        time.sleep(0.05)
    raise SiteFailed(f"The site was not ready within {READY_S_MAX:.0f} seconds.")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Let the site drain, but not for ever; Ctrl-C meanwhile stops it at once."""
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
