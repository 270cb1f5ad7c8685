"""A real server process, started from the command line as an operator would, with its log kept."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coatcheck.testing.waiting import wait_until
from harness.processes import members_of_session
from harness.store_place import store_url

ROOT = Path(__file__).resolve().parents[2]
APP = "harness.apps:app"
START_S = 30.0
STOP_S = 20.0

QUIET = {
    "heartbeat_s": "0.3",
    "lease_s": "6",
    "cancel_grace_s": "1",
    "grace_s": "2",
    "drain_delay_s": "0",
    "upkeep_interval_s": "0.2",
    "wait_max_s": "10",
    "stream_comment_s": "0.3",
    "body_timeout_s": "2",
    "log_format": "json",
}
"""Short settings with a lease that a busy machine does not lose."""

FRAGILE = QUIET | {"lease_s": "1.5"}
"""For tests in which processes die: their leases are taken over soon."""


class Server:
    """One `coatcheck serve` in a process group of its own."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str] = (),
        settings: Mapping[str, str] = QUIET,
        app_ref: str = APP,
    ) -> None:
        self.store = folder / "store.db"
        self._arguments = [app_ref, "--store", store_url(folder), *arguments]
        self._settings = settings
        self._folder = folder
        self._log = folder / f"server-{len(list(folder.glob('server-*.log')))}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_group_swept = False

    def start(self) -> "Server":
        """Start it and return when it says that it has started."""
        self.launch()
        wait_until(lambda: not self.is_running or self._started_line() is not None, "the server to start", START_S)
        assert self.is_running, self.log
        return self

    def launch(self) -> None:
        """Start it and do not wait."""
        self._log.touch()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self._folder,
                env=server_environment(self._settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def command(self) -> list[str]:
        """What starts it."""
        port = [] if "--port" in self._arguments else ["--port", "0"]
        return [sys.executable, "-m", "coatcheck", "serve", *self._arguments, *port]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def url(self) -> str:
        """Its base URL, as it tells it."""
        line = self._started_line()
        assert line is not None, self.log
        return str(line["url"]).rstrip("/")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def log_lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """The structured lines of its log, of one event or all."""
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if event is None or line.get("event") == event]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server process alone."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the server and everything below it at once, as a power cut would."""
        if self._process is None or self._is_group_swept:
            return
        self._is_group_swept = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_S)

    def ended(self, timeout_s: float = STOP_S) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(timeout_s)

    def stop(self) -> None:
        """Drain it; it must end by itself with 0 and leave no process behind."""
        if self._process is None or self._is_group_swept:
            return
        session = self.process.pid
        try:
            if self.is_running:
                self.signal(signal.SIGTERM)
            code = self.ended()
            wait_until(lambda: not members_of_session(session), "every process below the server to end", STOP_S)
        finally:
            self.kill()
        assert code == 0, f"exit code {code}\n{self.log[-4000:]}"

    def _started_line(self) -> dict[str, Any] | None:
        lines = self.log_lines("started")
        return lines[-1] if lines else None


class MountedServer(Server):
    """An ASGI app of somebody else's, served by uvicorn, that has a service mounted below it."""

    def __init__(self, folder: Path, outer_ref: str, arguments: Sequence[str] = ()) -> None:
        super().__init__(folder, settings=QUIET | {"store": store_url(folder)})
        self._outer_ref = outer_ref
        self._uvicorn_arguments = list(arguments)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "uvicorn", self._outer_ref, "--port", "0", *self._uvicorn_arguments]

    def _started_line(self) -> dict[str, Any] | None:
        found = re.search(r"running on (http://[0-9.:]+)", self.log)
        return None if found is None else {"url": found[1]}


def server_environment(settings: Mapping[str, str] = QUIET) -> dict[str, str]:
    """This process's environment without its own settings, with these, and with the app under test importable."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
    given = {f"COATCHECK_{name.upper()}": value for name, value in settings.items()}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)])
    return inherited | given | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
