"""PostgreSQL that refuses one session more: a service says so at its start, is 503 while it runs, and goes on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from coatcheck.testing.waiting import wait_until_async
from harness.postgres_server import PostgresServer
from harness.server import Server

WORK: dict[str, list[object]] = {"branches": []}
END_THOSE_OF_SERVICE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'coatcheck'
"""


class Crowd:
    """Sessions that somebody else holds: as many as there are."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._sessions: list[asyncpg.Connection[asyncpg.Record]] = []

    async def take_all(self) -> None:
        """Open sessions until the server refuses one."""
        while True:
            try:
                self._sessions.append(await asyncpg.connect(self._dsn))
            except asyncpg.TooManyConnectionsError:
                return

    async def has_everything(self) -> bool:
        """End what the service has, and take its place where it was quicker: whether nothing was left to it."""
        ended = await self._sessions[0].fetchval(END_THOSE_OF_SERVICE)
        await self.take_all()
        return bool(ended == 0)

    async def leave(self) -> None:
        """Close all of them."""
        await asyncio.gather(*(session.close() for session in self._sessions))
        self._sessions.clear()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server whose sessions are no other test's."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
async def dsn(own_server: PostgresServer) -> str:
    return await own_server.new_database()


@pytest.fixture
async def crowd(dsn: str) -> AsyncIterator[Crowd]:
    crowd = Crowd(dsn)
    yield crowd
    await crowd.leave()


@pytest.fixture
def service(dsn: str, tmp_path: Path) -> Iterator[Server]:
    service = Server(tmp_path, ["--store", dsn])
    yield service
    service.kill()


async def test_a_service_that_gets_no_session_says_so_in_one_sentence(crowd: Crowd, service: Server) -> None:
    await crowd.take_all()
    service.launch()
    assert service.process.wait(30) != 0
    told = [line for line in service.log.splitlines() if not line.startswith("{")]
    assert told == ["coatcheck: store: PostgreSQL: sorry, too many clients already"]


async def test_without_a_session_requests_are_503_until_there_is_one(crowd: Crowd, service: Server) -> None:
    service.start()
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        assert (await http.post("/shop/reports", json=WORK)).status_code == 202
        await crowd.take_all()
        await wait_until_async(crowd.has_everything, "all sessions to be somebody else's")
        refused = await http.post("/shop/reports", json=WORK)
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "too many clients" not in refused.text
        await crowd.leave()

        async def is_accepted() -> bool:
            return (await http.post("/shop/reports", json=WORK, headers={"Idempotency-Key": "a"})).status_code == 202

        await wait_until_async(is_accepted, "the service to go on")
        accepted = await http.post("/shop/reports", json=WORK, headers={"Idempotency-Key": "a"})
        done = await http.get(accepted.headers["location"], headers={"Prefer": "wait=10"})
        assert done.json()["status"] == "succeeded"
