"""Serving: tokens of an identity provider that is really there, changes its keys while we serve, and goes away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from coatcheck.admission.issuer_keys import AGAIN_S
from coatcheck.store.clock import SystemClock
from coatcheck.testing.waiting import wait_until_async
from harness.http import Client, problem
from harness.identity_provider import AUDIENCE, ISSUER, KeySetServer, SigningKey, key_set_server
from harness.server import QUIET

from .conftest import Connect, Serve
from .test_serving_controls import command

TOKENS = {"auth": "jwt", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
HOUR_S = 3600
CLOCK = SystemClock()
FIRST, SECOND = SigningKey("first"), SigningKey("second")

Opening = Callable[[], Coroutine[Any, Any, Client]]


@pytest.fixture
async def provider() -> AsyncIterator[KeySetServer]:
    async with key_set_server() as server:
        server.publish(FIRST.public())
        yield server


@pytest.fixture
def opening(serve: Serve, connect: Connect, provider: KeySetServer, tmp_path: Path) -> Opening:
    """Starts a server that asks the provider, with a tenant; the provider answers meanwhile."""
    settings = QUIET | TOKENS | {"jwt_keys": provider.url}

    def start() -> Client:
        client = connect(serve(settings=settings))
        command(tmp_path, "tenants", "add", "ours")
        return client

    return lambda: asyncio.to_thread(start)


async def ask(client: Client, token: str, path: str = "/v1/jobs") -> httpx.Response:
    return await asyncio.to_thread(client.get, path, Authorization=f"Bearer {token}")


async def until_taken(client: Client, key: SigningKey, timeout_s: float = 5.0) -> None:
    """Wait until tokens of this key are good."""

    async def is_taken() -> bool:
        return (await ask(client, key.sign(CLOCK.now()))).status_code == 200

    await wait_until_async(is_taken, f"tokens of the {key.kid} key to be taken", timeout_s)


async def is_refused(client: Client, token: str) -> None:
    answer = await ask(client, token)
    problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_is_taken_for_as_long_as_it_says_and_by_whom_it_is_meant_for(opening: Opening) -> None:
    client = await opening()
    await until_taken(client, FIRST)
    token = FIRST.sign(CLOCK.now())
    accepted = await asyncio.to_thread(client.post, "anything", 7, Authorization=f"Bearer {token}")
    assert accepted.status_code == 202, accepted.text
    assert (await ask(client, token, accepted.json()["status_url"])).status_code == 200
    problem(await ask(client, FIRST.sign(CLOCK.now(), scope="submit")), 403, "forbidden")
    await is_refused(client, FIRST.sign(CLOCK.now() - HOUR_S * 1000))
    await is_refused(client, FIRST.sign(CLOCK.now(), nbf=CLOCK.now() // 1000 + HOUR_S))
    await is_refused(client, FIRST.sign(CLOCK.now(), aud="another"))
    await is_refused(client, FIRST.sign(CLOCK.now(), iss="https://elsewhere.example.org/"))
    await is_refused(client, FIRST.sign(CLOCK.now(), tenant="unheard-of"))
    await is_refused(client, SigningKey("first").sign(CLOCK.now()))


async def test_keys_that_are_rotated_take_over_without_a_restart(opening: Opening, provider: KeySetServer) -> None:
    client = await opening()
    await until_taken(client, FIRST)
    old = FIRST.sign(CLOCK.now())
    assert (await ask(client, old)).status_code == 200
    provider.publish(SECOND.public())
    await until_taken(client, SECOND, 2 * AGAIN_S)
    await is_refused(client, old)
    assert provider.asked <= 3, "unknown keys are looked for now and then, not at each request"


async def test_a_provider_that_is_away_is_waited_for_and_not_needed_afterwards(
    opening: Opening, provider: KeySetServer
) -> None:
    port = provider.port
    await provider.stop()
    client = await opening()
    answer = await ask(client, FIRST.sign(CLOCK.now()))
    problem(answer, 503, "identity-provider-unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert (await asyncio.to_thread(client.get, "/readyz")).status_code == 200
    await provider.start(port)
    await until_taken(client, FIRST, 2 * AGAIN_S)
    await provider.stop()
    assert (await ask(client, FIRST.sign(CLOCK.now(), sub="another"))).status_code == 200
    await is_refused(client, SECOND.sign(CLOCK.now()))
