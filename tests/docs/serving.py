"""A real server for a page's examples, in a directory of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from coatcheck.testing.waiting import wait_until

from .pages import ROOT, Page

STOP_S = 30
IMPATIENT = {"COATCHECK_LEASE_S": "3", "COATCHECK_HEARTBEAT_S": "1", "COATCHECK_DRAIN_DELAY_S": "0"}


class Server:
    """`coatcheck serve` as a process. Started again, it has the same port and the same store."""

    def __init__(self, app_ref: str, folder: Path) -> None:
        self._folder = folder
        port = _free_port()
        self._command = [sys.executable, "-m", "coatcheck", "serve", app_ref, "--port", str(port)]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)

    def start(self) -> None:
        """Return once it is ready."""
        with (self._folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=_environment(), stdout=log, stderr=log
            )
        wait_until(lambda: self._process.poll() is not None or self._is_ready(), "the server to be ready", 30)
        assert self._process.poll() is None, (self._folder / "server.log").read_text("utf-8")

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(STOP_S)

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self._process.terminate()
        self._process.wait(STOP_S)

    def _is_ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


@contextmanager
def serving(app_ref: str, folder: Path) -> Iterator[Server]:
    """Serve the app of a module in the folder."""
    server = Server(app_ref, folder)
    with server.client:
        try:
            server.start()
            yield server
        finally:
            server.stop()


def write_modules(page: Page, folder: Path) -> None:
    """Write the page's code blocks that are marked `file=NAME`."""
    for fence in page.fences:
        for word in fence.words:
            if word.startswith("file="):
                (folder / word.removeprefix("file=")).write_text(fence.code, "utf-8")


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    path = [str(ROOT / "src"), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | IMPATIENT | {"PYTHONPATH": os.pathsep.join(path)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
