"""View tokens: what they read, what they never do, and when they end."""

import base64
import json
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_site import SIGNING_KEY, GuardedSite, bearer, open_guarded_site
from http_site import Connection
from test_handing_in import assert_problem

from coatcheck.core import limits
from coatcheck.core.tenancy import Revocation

OTHER_KEY = "another-signing-key-that-comes-after-it"


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path) as opened:
        yield opened


async def made(guarded: GuardedSite, url: str, body: Any = None, key: str | None = None) -> dict[str, str]:
    headers = bearer(key or guarded.key)
    response = await guarded.client.post(f"{url}/view-token", json=body, headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    answered: dict[str, str] = response.json()
    return answered


async def token_of(guarded: GuardedSite, url: str, body: Any = None, key: str | None = None) -> str:
    return (await made(guarded, url, body, key))["token"]


async def session_of(guarded: GuardedSite, url: str, token: str) -> httpx.Response:
    return await guarded.client.post(f"{url}/view-session", headers=bearer(token))


async def test_a_token_reads_its_job_and_nothing_else(guarded: GuardedSite) -> None:
    url, other = await guarded.accepted(), await guarded.accepted()
    token = await token_of(guarded, url)
    assert token.startswith("cct_")
    assert (await guarded.get(url, token)).json()["status"] == "queued"
    assert (await guarded.client.head(url, headers=bearer(token))).status_code == 200
    assert (await guarded.get(f"{url}/attempts", token)).status_code == 200
    assert_problem(await guarded.get(f"{url}/result", token), 409, "job-not-finished")
    for path in (other, f"{other}/result", f"{other}/attempts"):
        assert_problem(await guarded.get(path, token), 404, "not-found")
    for path in ("/reports", "/v1/jobs"):
        assert_problem(await guarded.get(path, token), 403, "forbidden")
    assert_problem(await guarded.submit(token), 403, "forbidden")
    for method, path in (("POST", f"{url}/cancel"), ("DELETE", url), ("POST", f"{url}/view-token")):
        response = await guarded.client.request(method, path, headers=bearer(token))
        assert_problem(response, 403, "forbidden")
    assert (await guarded.get("/metrics", token)).status_code == 403


async def test_a_token_opens_the_stream(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    headers = bearer(await token_of(guarded, url)) | {"Accept": "text/event-stream"}
    stream = Connection(guarded.site, "GET", url, headers)
    assert (await stream.next())["status"] == 200
    stream.leave()
    await stream.end()


async def test_it_lives_as_long_as_asked_for_and_no_longer(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url, {"lifetime_s": 60})
    guarded.site.clock.advance(59.9)
    assert (await guarded.get(url, token)).status_code == 200
    guarded.site.clock.advance(0.1)
    assert_problem(await guarded.get(url, token), 401, "unauthenticated")


@pytest.mark.parametrize(
    ("body", "lifetime_s"),
    [
        (None, limits.VIEW_TOKEN_S_DEFAULT),
        ({}, limits.VIEW_TOKEN_S_DEFAULT),
        ({"lifetime_s": None}, limits.VIEW_TOKEN_S_DEFAULT),
        ({"lifetime_s": 10**9}, limits.VIEW_TOKEN_S_MAX),
        ({"lifetime_s": 1e300}, limits.VIEW_TOKEN_S_MAX),
        ({"lifetime_s": 60.0}, 60),
    ],
)
async def test_its_lifetime_is_capped(guarded: GuardedSite, body: Any, lifetime_s: int) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url, body)
    guarded.site.clock.advance(lifetime_s - 1)
    assert (await guarded.get(url, token)).status_code == 200
    guarded.site.clock.advance(1)
    assert (await guarded.get(url, token)).status_code == 401


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ([], [""]),
        ({"lifetime_s": 0}, ["/lifetime_s"]),
        ({"lifetime_s": True}, ["/lifetime_s"]),
        ({"lifetime_s": 1.5}, ["/lifetime_s"]),
        ({"lifetime_s": "60"}, ["/lifetime_s"]),
        ({"life/time": 1}, ["/life~1time"]),
    ],
)
async def test_a_body_that_does_not_fit(guarded: GuardedSite, body: Any, pointers: list[str]) -> None:
    url = await guarded.accepted()
    response = await guarded.client.post(f"{url}/view-token", json=body, headers=bearer(guarded.key))
    assert_problem(response, 422, "invalid-request")
    assert [error["pointer"] for error in response.json()["errors"]] == pointers


async def test_it_never_outlives_the_key_it_was_made_with(guarded: GuardedSite) -> None:
    key = await guarded.add_key(expires_at=guarded.site.clock.now() + 30_000)
    guarded.forget()
    url = await guarded.accepted(key)
    answered = await made(guarded, url, {"lifetime_s": 600}, key)
    assert answered["expires_at"] == "2026-01-05T08:00:30.000Z"
    guarded.site.clock.advance(30)
    assert (await guarded.get(url, answered["token"])).status_code == 401


async def test_it_dies_with_the_key_it_was_made_with(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    token, other = await token_of(guarded, url), await token_of(guarded, url, key=await guarded.add_key())
    assert (await guarded.get(url, token)).status_code == 200
    await guarded.revoke_key(guarded.key)
    guarded.forget()
    assert_problem(await guarded.get(url, token), 401, "unauthenticated")
    assert (await guarded.get(url, other)).status_code == 200


async def test_it_dies_with_its_tenant(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url)
    await guarded.revoke_tenant("ours", Revocation.QUARANTINE)
    guarded.forget()
    assert (await guarded.get(url, token)).status_code == 200
    await guarded.revoke_tenant("ours", Revocation.ERASE)
    guarded.forget()
    assert (await guarded.get(url, token)).status_code == 401


async def test_signing_keys_are_rotated_without_a_break(guarded: GuardedSite, tmp_path: Path) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url)
    settings = {"signing_keys": f"{OTHER_KEY},{SIGNING_KEY}"}
    async with open_guarded_site(tmp_path, settings, is_new=False) as rotated:
        assert (await rotated.get(url, token)).status_code == 200
        newer = await token_of(rotated, url, key=guarded.key)
        assert (await guarded.get(url, newer)).status_code == 401
    async with open_guarded_site(tmp_path, {"signing_keys": OTHER_KEY}, is_new=False) as after:
        assert (await after.get(url, token)).status_code == 401
        assert (await after.get(url, newer)).status_code == 200


async def test_what_was_tampered_with_is_refused(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url)
    head, _, signature = token.partition(".")
    claims = json.loads(base64.urlsafe_b64decode(head.removeprefix("cct_") + "=="))
    longer = [*claims[:2], claims[2] + 1000, *claims[3:]]
    forged = "cct_" + base64.urlsafe_b64encode(json.dumps(longer).encode()).decode().rstrip("=")
    for bad in (f"{forged}.{signature}", f"{head}.{signature[:-1]}", head, f"{head}.{'A' * 43}", token + "="):
        assert_problem(await guarded.get(url, bad), 401, "unauthenticated")


async def test_a_session_is_a_cookie_for_the_jobs_path_alone(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    token = await token_of(guarded, url, {"lifetime_s": 60})
    guarded.site.clock.advance(10)
    response = await session_of(guarded, url, token)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["cache-control"] == "no-store"
    cookie = SimpleCookie(response.headers["set-cookie"])["coatcheck_view"]
    assert cookie.value == token
    assert (cookie["path"], cookie["max-age"], cookie["samesite"]) == (url, "50", "Strict")
    assert cookie["httponly"]
    assert cookie["secure"]
    assert not cookie["domain"]
    headers = {"Cookie": f"other=1; coatcheck_view={token}"}
    for path in (url, f"{url}/attempts"):
        assert (await guarded.client.get(path, headers=headers)).status_code == 200


async def test_a_cookie_changes_nothing(guarded: GuardedSite) -> None:
    """What a page of somebody else's can make a browser send, cookie included, is good for nothing but reading."""
    url = await guarded.accepted()
    headers = {"Cookie": f"coatcheck_view={await token_of(guarded, url)}"}
    tries = [("POST", "/reports"), ("POST", f"{url}/cancel"), ("DELETE", url), ("POST", f"{url}/view-token")]
    for method, path in [*tries, ("POST", f"{url}/view-session"), ("GET", "/reports"), ("GET", "/v1/jobs")]:
        response = await guarded.client.request(method, path, headers=headers)
        assert_problem(response, 401, "unauthenticated")
    assert (await guarded.get(url)).json()["cancel_requested"] is False


async def test_a_key_begins_no_session(guarded: GuardedSite) -> None:
    url, other = await guarded.accepted(), await guarded.accepted()
    assert_problem(await session_of(guarded, url, guarded.key), 403, "forbidden")
    assert_problem(await session_of(guarded, other, await token_of(guarded, url)), 404, "not-found")


@pytest.mark.parametrize(
    ("base_url", "public_url", "is_secure"),
    [
        ("http://127.0.0.1:8080", None, False),
        ("http://[::1]:8080", None, False),
        ("http://localhost", None, False),
        ("http://jobs.example.org", None, True),
        ("https://localhost", None, True),
        ("http://127.0.0.1:8080", "https://jobs.example.org/api", True),
        ("http://127.0.0.1:8080", "http://127.0.0.1:9000/api", False),
    ],
)
async def test_a_cookie_is_secure_but_on_this_machine(
    tmp_path: Path, base_url: str, public_url: str | None, is_secure: bool
) -> None:
    async with open_guarded_site(tmp_path, {"public_url": public_url} if public_url else {}) as guarded:
        url = (await guarded.accepted()).removeprefix(public_url or "")
        token = await token_of(guarded, url)
        transport = httpx.ASGITransport(app=guarded.site.asgi)
        async with httpx.AsyncClient(transport=transport, base_url=base_url) as client:
            response = await client.post(f"{url}/view-session", headers=bearer(token))
        cookie = SimpleCookie(response.headers["set-cookie"])["coatcheck_view"]
        assert bool(cookie["secure"]) is is_secure
        assert cookie["path"] == ("/api" if public_url else "") + url


async def test_without_a_signing_key_there_are_no_views(tmp_path: Path) -> None:
    async with open_guarded_site(tmp_path, {"signing_keys": ()}) as guarded:
        url = await guarded.accepted()
        for route in ("view-token", "view-session"):
            response = await guarded.client.post(f"{url}/{route}", headers=bearer(guarded.key))
            assert_problem(response, 404, "not-found")
