"""One quiet server for most tests, and a way to start more where a test needs its own."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from harness.http import Client
from harness.server import APP, FRAGILE, Server
from harness.stage import Stage


class Serve(Protocol):
    """Starts a server of this test's store, with other arguments or settings where given."""

    def __call__(self, *arguments: str, settings: Mapping[str, str] = FRAGILE, app_ref: str = APP) -> Server: ...


class Connect(Protocol):
    """Makes a client of a server."""

    def __call__(self, server: Server) -> Client: ...


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that tests share: API, one runner, relay and upkeep in one place."""
    shared = Server(tmp_path_factory.mktemp("shared"))
    try:
        yield shared.start()
        assert not shared.log_lines("unhandled_error"), shared.log[-4000:]
        shared.stop()
    finally:
        shared.kill()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client of the shared server."""
    talking = Client(server.url)
    yield talking
    talking.close()


@pytest.fixture(scope="module")
def crash_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server whose runners may die without another test noticing."""
    own = Server(tmp_path_factory.mktemp("crashing"))
    try:
        talking = Client(own.start().url)
        yield talking
        talking.close()
        own.stop()
    finally:
        own.kill()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Where this test's handlers leave traces and wait; at its end all may go."""
    made = Stage(tmp_path / "stage")
    yield made
    made.go()


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[Stage]:
    """A second stage, for handlers that go on at another time."""
    made = Stage(tmp_path / "neighbour")
    yield made
    made.go()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Servers of this test's own, on one store; those still running at its end must drain cleanly."""
    started: list[Server] = []

    def start(*arguments: str, settings: Mapping[str, str] = FRAGILE, app_ref: str = APP) -> Server:
        started.append(Server(tmp_path, arguments, settings, app_ref))
        return started[-1].start()

    try:
        yield start
        for own in reversed(started):
            own.stop()
    finally:
        for own in started:
            own.kill()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Clients of this test's own."""
    made: list[Client] = []

    def make(server: Server) -> Client:
        made.append(Client(server.url))
        return made[-1]

    yield make
    for talking in made:
        talking.close()
