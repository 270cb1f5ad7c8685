"""Starts the bookshop's server on this machine for as long as a `with` block lasts."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

READY_S_MAX = 60.0
STOP_S_MAX = 45.0
EXAMPLES = Path(__file__).resolve().parents[1]


class ServerFailed(Exception):
    """The server did not start; the message says so in one sentence."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    url: str
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def local_server(folder: Path, port: int, log: BinaryIO, flags: Sequence[str] = ()) -> Iterator[LocalServer]:
    """Run the server until the block ends.

    Args:
        folder: where jobs and orders are kept.
        port: to listen on.
        log: takes all that the server prints.
        flags: more of `coatcheck serve`.

    Raises:
        ServerFailed: the server does not answer within a minute.
    """
    process = subprocess.Popen(  # noqa: S603 - every word of the command is ours
        [*serve_command(folder, port), *flags], cwd=folder, env=server_environment(folder), stdout=log, stderr=log
    )
    server = LocalServer(f"http://127.0.0.1:{port}", process)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        _stop(process)


def serve_command(folder: Path, port: int | str) -> list[str]:
    """The command that serves the bookshop with its store in `folder`."""
    store = f"sqlite:///{folder.resolve() / 'bookshop.db'}"
    return [sys.executable, "-m", "coatcheck", "serve", "bookshop.app:app", "--store", store, "--port", f"{port}"]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def server_environment(folder: Path) -> dict[str, str]:
    """This process's variables, without settings that are meant for another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    paths = [EXAMPLES, *(Path(path).resolve() for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path)]
    python_path = os.pathsep.join(map(str, paths))
    return kept | {"PYTHONPATH": python_path, "BOOKSHOP_ORDERS": str(folder.resolve() / "orders")}


def _wait_until_ready(server: LocalServer) -> None:
    give_up_at = time.monotonic() + READY_S_MAX
    while time.monotonic() < give_up_at:
        code = server.process.poll()
        if code is not None:
            raise ServerFailed(f"The server stopped with exit code {code} before it was ready.")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/readyz", timeout=2).is_success:
                return
        time.sleep(0.05)
    raise ServerFailed(f"The server was not ready within {READY_S_MAX:.0f} seconds.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let the server drain, but not for ever; Ctrl-C meanwhile stops it at once."""
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
