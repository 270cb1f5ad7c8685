"""The word of a gateway: when it counts, and that nobody else's does."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest
from guarded_site import GuardedSite, bearer, open_guarded_site
from test_handing_in import assert_problem

OLD, NEW = "the-secret-that-is-on-its-way-out-now", "the-secret-that-takes-its-place-today"
BY_SECRET = {"auth": "gateway,keys", "gateway_secrets": f"{NEW},{OLD}"}
BY_NETWORK = {"auth": "gateway", "gateway_networks": "10.1.2.0/24,2001:db8::/32", "gateway_scopes": "read"}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path, BY_SECRET) as opened:
        yield opened


def said(name: str | None = "ours", *secrets: str) -> Sequence[tuple[str, str]]:
    named = [] if name is None else [("X-Consumer-Username", name)]
    return [*named, *(("X-Gateway-Secret", secret) for secret in secrets)]


async def test_its_word_counts_beside_either_secret(guarded: GuardedSite) -> None:
    for secret in (OLD, NEW):
        response = await guarded.client.post("/reports", json={"branch": "leeds"}, headers=said("ours", secret))
        assert response.status_code == 202
        url = response.headers["location"]
        assert (await guarded.client.get(url, headers=said("ours", secret))).status_code == 200
        assert (await guarded.client.get(url, headers=said("theirs", secret))).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        said("ours"),
        said("ours", ""),
        said("ours", NEW[:-1]),
        said("ours", NEW + " x"),
        said("ours", NEW, NEW),
        said(None, NEW),
        said("", NEW),
        said("unheard-of", NEW),
        said("two words", NEW),
        said("o" * 300, NEW),
        [*said("ours", NEW), ("X-Consumer-Username", "theirs")],
        [*said("ours"), ("X-Forwarded-For", "10.1.2.3"), ("Forwarded", "for=10.1.2.3"), ("X-Real-IP", "10.1.2.3")],
    ],
)
async def test_its_word_without_its_secret_is_nobodys(guarded: GuardedSite, headers: Sequence[tuple[str, str]]) -> None:
    assert_problem(await guarded.client.get("/v1/jobs", headers=list(headers)), 401, "unauthenticated")


async def test_what_a_client_says_of_itself_does_not_change_who_its_key_says_it_is(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    pretending = bearer(guarded.other_key) | {"X-Consumer-Username": "ours"}
    assert (await guarded.client.get(url, headers=pretending)).status_code == 404


async def test_the_gateway_names_its_caller_whatever_else_it_passes_on(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    passed_on = [*said("ours", NEW), ("apikey", "the-gateway's-own-key"), ("Authorization", "Basic eDp5")]
    assert (await guarded.client.get(url, headers=passed_on)).status_code == 200


@pytest.mark.parametrize(
    ("peer", "is_gateway"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::7", True),
        ("10.1.3.3", False),
        ("127.0.0.1", False),
        ("2001:db9::7", False),
        ("somewhere", False),
        ("", False),
    ],
)
async def test_its_word_counts_from_its_network(tmp_path: Path, peer: str, is_gateway: bool) -> None:
    async with open_guarded_site(tmp_path, BY_NETWORK) as guarded:
        transport = httpx.ASGITransport(app=guarded.site.asgi, client=(peer, 4321))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            listed = await client.get("/v1/jobs", headers=said("ours"))
            assert listed.status_code == (200 if is_gateway else 401)
            submitted = await client.post("/reports", json={"branch": "leeds"}, headers=said("ours"))
            assert submitted.status_code == (403 if is_gateway else 401)


async def test_the_header_may_have_another_name(tmp_path: Path) -> None:
    settings = {"auth": "gateway", "gateway_secrets": NEW, "gateway_header": "X-Who", "gateway_secret_header": "X-Sec"}
    async with open_guarded_site(tmp_path, settings) as guarded:
        good = await guarded.client.get("/v1/jobs", headers={"X-Who": "ours", "X-Sec": NEW})
        assert good.status_code == 200
        assert (await guarded.client.get("/v1/jobs", headers=list(said("ours", NEW)))).status_code == 401
