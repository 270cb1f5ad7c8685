"""A server process under limits of the operating system, and what it takes of them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from harness.http import Client
from harness.server import QUIET, Server

MIB = 1024 * 1024


class LimitedServer(Server):
    """A server started by a shell that has set limits: `-n 64` for open files, `-d 262144` for KiB of data."""

    def __init__(self, folder: Path, limits: Sequence[str] = (), settings: Mapping[str, str] = QUIET) -> None:
        super().__init__(folder, settings=settings)
        self._limits = limits

    def command(self) -> list[str]:
        ulimits = "".join(f"ulimit {limit}; " for limit in self._limits)
        return ["/bin/sh", "-c", f'{ulimits}exec "$@"', "sh", *super().command()]


def memory_mib(server: Server) -> float:
    """What the server process itself holds in memory, without its runners."""
    return float(psutil.Process(server.process.pid).memory_info().rss) / MIB


def files_open(server: Server) -> int:
    """How many files and sockets the server process has open."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def open_connections(client: Client) -> int:
    """How many connections the server says it holds, the client's own among them."""
    found = [
        line for line in client.get("/metrics").text.splitlines() if line.startswith("coatcheck_http_connections ")
    ]
    return int(float(found[0].rpartition(" ")[2]))
