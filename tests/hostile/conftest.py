"""One server for the tests whose clients cannot harm it, and servers of their own for the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from harness.http import Client
from harness.server import QUIET, Server
from harness.stage import Stage

from .limited import LimitedServer

Limited = Callable[[Sequence[str], Mapping[str, str]], LimitedServer]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that tests share. None of them may make it meet a fault of its own."""
    shared = Server(tmp_path_factory.mktemp("besieged"))
    try:
        yield shared.start()
        assert shared.log_lines("request_failed") == []
        assert shared.log_lines("unhandled_error") == []
        shared.stop()
    finally:
        shared.kill()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client of the shared server."""
    talking = Client(server.url)
    yield talking
    talking.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Where handlers wait until a test is over."""
    made = Stage(tmp_path / "stage")
    yield made
    made.go()


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    """Servers of this test's own under limits of the operating system; those that still run must drain cleanly."""
    started: list[LimitedServer] = []

    def start(limits: Sequence[str], settings: Mapping[str, str]) -> LimitedServer:
        started.append(LimitedServer(tmp_path, limits, QUIET | dict(settings)))
        started[-1].start()
        return started[-1]

    try:
        yield start
        for own in started:
            own.stop()
    finally:
        for own in started:
            own.kill()
