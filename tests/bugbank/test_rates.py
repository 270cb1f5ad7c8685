"""Rates: one limit for a whole fleet, no error at any edge, the burst that is stated, and no key a client makes up."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from coatcheck.admission.buckets import LocalBuckets
from coatcheck.admission.rates import SUBMISSIONS, Rates
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, EACH, LimitBook, LimitName
from coatcheck.core.tenancy import Controls
from coatcheck.core.terms import Terms
from coatcheck.testing.clock import ManualClock
from contract.conftest import Connect, Serve
from harness.server import QUIET, Server
from harness.valkey_server import ValkeyServer

from .scale import scaled


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server of this test's own, running."""
    started = ValkeyServer(tmp_path)
    try:
        started.start()
        yield started
    finally:
        started.kill()


async def flood(servers: list[Server], times: int) -> Counter[int]:
    """Hand in this much at once to each of the servers."""
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(timeout=60, limits=limits) as http:
        posts = [
            http.post(f"{server.url}/v1/anything", json={"number": number})
            for number in range(times)
            for server in servers
        ]
        return Counter(answer.status_code for answer in await asyncio.gather(*posts))


async def test_bb_081_processes_share_one_limit(serve: Serve, valkey: ValkeyServer) -> None:
    """With nothing lost in between there is no slack: the processes ask one bucket on one clock."""
    limited = QUIET | {"limits_store": valkey.url, "tenant_submit_rate": "0.01", "tenant_submit_burst": "60"}
    servers = [serve("--roles", "api", settings=limited) for _ in range(scaled(2, 4))]
    assert await flood(servers, 60) == {202: 60, 429: 60 * len(servers) - 60}
    assert not any(server.log_lines("interrupted") for server in servers)


async def test_bb_082_no_edge_of_a_window_is_an_error(serve: Serve, valkey: ValkeyServer) -> None:
    limited = QUIET | {"limits_store": valkey.url, "tenant_submit_rate": "100", "tenant_submit_burst": "20"}
    seen: Counter[int] = Counter()
    server = serve("--roles", "api", settings=limited)
    for edge in range(5):
        if edge == 3:
            valkey.kill()
        seen += await flood([server], scaled(100, 1_000))
        if edge == 3:
            valkey.start()
    assert seen.keys() == {202, 429}, seen


def test_bb_083_an_even_stream_at_the_limit_and_the_stated_burst() -> None:
    clock = ManualClock()
    source = Terms(Controls(), LimitBook({(LimitName.SUBMIT_RATE, EACH, ALL): 5.0}), {})
    rates = Rates(source, LocalBuckets(clock))

    def try_one() -> Refused | None:
        try:
            asyncio.run(rates.take(SUBMISSIONS, "acme", "reports"))
        except Refused as refused:
            return refused
        return None

    evenly = []
    for _ in range(150):
        evenly.append(try_one())
        clock.advance(0.2)
    assert evenly.count(None) == len(evenly)
    clock.advance(60)
    at_once = [try_one() for _ in range(7)]
    assert at_once[:5] == [None] * 5
    last = at_once[-1]
    assert last is not None
    clock.advance(float(dict(last.headers)["Retry-After"]))
    assert try_one() is None


def test_bb_084_a_header_that_the_client_makes_up_gives_no_new_budget(serve: Serve, connect: Connect) -> None:
    client = connect(serve(settings=QUIET | {"tenant_submit_rate": "0.01", "tenant_submit_burst": "3"}))
    addresses = [f"198.51.100.{number}" for number in range(12)]
    made_up = [
        {"X_Forwarded_For": address, "Forwarded": f"for={address}", "X_Real_IP": address, "X_Client_IP": address}
        for address in addresses
    ]
    answers = [client.post("anything", {}, **headers).status_code for headers in made_up]
    assert Counter(answers) == {202: 3, 429: 9}
