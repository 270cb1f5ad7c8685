"""Tokens of an identity provider, with a real key set over HTTP: which are good, and what happens when keys change."""

import base64
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from guarded_site import GuardedSite, bearer, open_guarded_site
from test_handing_in import assert_problem

from coatcheck.admission import issuer_keys
from coatcheck.admission.key_sets import KeySetUnavailable
from coatcheck.core import limits
from coatcheck.core.tenancy import Revocation
from coatcheck.http.key_set_source import KeySetFile, KeySetUrl
from harness.identity_provider import AUDIENCE, ISSUER, KeySetServer, SigningKey, key_set_server

KEY = SigningKey("first")
RSA_KEY = SigningKey("rsa", "RS256")
TOKENS = {"auth": "jwt", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


@pytest.fixture
async def provider() -> AsyncIterator[KeySetServer]:
    async with key_set_server() as server:
        server.publish(KEY.public(), RSA_KEY.public())
        yield server


@pytest.fixture
async def guarded(tmp_path: Path, provider: KeySetServer) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path, TOKENS | {"jwt_keys": provider.url}) as opened:
        yield opened


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def status_of(guarded: GuardedSite, token: str) -> int:
    return (await guarded.get("/v1/jobs", token)).status_code


@pytest.mark.parametrize("key", [KEY, RSA_KEY])
async def test_a_token_is_good_for_its_tenant_and_scopes(guarded: GuardedSite, key: SigningKey) -> None:
    now = guarded.site.clock.now()
    url = await guarded.accepted(key.sign(now))
    assert (await guarded.get(url, key.sign(now, scope=["read", 7]))).status_code == 200
    assert_problem(await guarded.submit(key.sign(now, scope="read")), 403, "forbidden")
    assert_problem(await guarded.get(url, key.sign(now, scope=None)), 403, "forbidden")
    assert_problem(await guarded.get(url, key.sign(now, tenant="theirs")), 404, "not-found")


async def test_a_token_is_no_operators_whatever_it_says(tmp_path: Path, provider: KeySetServer) -> None:
    settings = TOKENS | {"jwt_keys": provider.url}
    async with open_guarded_site(tmp_path, settings) as guarded:
        token = KEY.sign(guarded.site.clock.now(), scope="submit read cancel admin")
        assert_problem(await guarded.get("/metrics", token), 403, "forbidden")


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://elsewhere.example.org/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 1e300},
        {"tenant": None},
        {"tenant": 7},
        {"tenant": ""},
        {"tenant": "unheard-of"},
        {"tenant": "o" * 300},
        {"tenant": "ours\n"},
    ],
)
async def test_claims_that_do_not_hold(guarded: GuardedSite, changes: dict[str, Any]) -> None:
    token = KEY.sign(guarded.site.clock.now(), **changes)
    assert_problem(await guarded.get("/v1/jobs", token), 401, "unauthenticated")


async def test_one_audience_of_several_is_enough(guarded: GuardedSite) -> None:
    assert await status_of(guarded, KEY.sign(guarded.site.clock.now(), aud=["other", AUDIENCE])) == 200


async def test_time_is_by_our_clock_with_the_leeway(guarded: GuardedSite) -> None:
    clock = guarded.site.clock
    token, early = KEY.sign(clock.now()), KEY.sign(clock.now(), nbf=clock.now() // 1000 + 40)
    assert await status_of(guarded, token) == 200
    assert await status_of(guarded, early) == 401
    clock.advance(10)
    assert await status_of(guarded, early) == 200
    clock.advance(79.9)
    assert await status_of(guarded, token) == 200
    clock.advance(0.1)
    assert await status_of(guarded, token) == 401
    assert await status_of(guarded, KEY.sign(clock.now(), exp=clock.now() // 1000 - 31)) == 401


async def test_signatures_of_others_are_refused(guarded: GuardedSite) -> None:
    now = guarded.site.clock.now()
    good = KEY.sign(now)
    head, claims, signature = good.split(".")
    shared = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{claims}"
    by_secret = hmac.digest(json.dumps(KEY.public()).encode(), shared.encode(), "sha256")
    tokens = {
        "another key": SigningKey("first").sign(now),
        "no signature": f"{head}.{claims}.",
        "none": f"{encoded({'alg': 'none', 'kid': 'first'})}.{claims}.",
        "a shared secret": f"{shared}.{base64.urlsafe_b64encode(by_secret).decode().rstrip('=')}",
        "another algorithm": f"{encoded({'alg': 'ES512', 'kid': 'first'})}.{claims}.{signature}",
        "other claims": f"{head}.{encoded({'tenant': 'theirs'})}.{signature}",
        "critical members": KEY.sign(now, headers={"crit": ["b64"], "b64": True}),
        "a number for a key id": f"{encoded({'alg': 'ES256', 'kid': 7})}.{claims}.{signature}",
        "no list": f"{encoded({'alg': ['ES256'], 'kid': 'first'})}.{claims}.{signature}",
        "deep": f"{base64.urlsafe_b64encode(b'[' * 4000).decode()}.e30.e30",
        "dots": "..",
    }
    for name, token in tokens.items():
        assert await status_of(guarded, token) == 401, name
    assert await status_of(guarded, good) == 200


async def test_a_token_is_verified_once_and_ends_with_its_tenant(
    guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = KEY.sign(guarded.site.clock.now())
    assert await status_of(guarded, token) == 200
    monkeypatch.setattr(jwt, "decode", None)
    assert await status_of(guarded, token) == 200
    await guarded.revoke_tenant("ours", Revocation.ERASE)
    guarded.forget()
    assert await status_of(guarded, token) == 401


async def test_a_new_key_is_fetched_for_the_first_token_that_names_it(
    guarded: GuardedSite, provider: KeySetServer
) -> None:
    clock = guarded.site.clock
    assert await status_of(guarded, KEY.sign(clock.now())) == 200
    rotated = SigningKey("second")
    provider.publish(KEY.public(), rotated.public())
    clock.advance(issuer_keys.AGAIN_S)
    assert await status_of(guarded, rotated.sign(clock.now())) == 200
    assert await status_of(guarded, KEY.sign(clock.now())) == 200
    assert provider.asked == 2


async def test_unknown_keys_ask_the_provider_only_now_and_then(guarded: GuardedSite, provider: KeySetServer) -> None:
    clock = guarded.site.clock
    for _ in range(5):
        assert await status_of(guarded, SigningKey("unheard-of").sign(clock.now())) == 401
    assert provider.asked == 1
    clock.advance(issuer_keys.AGAIN_S)
    for _ in range(5):
        assert await status_of(guarded, SigningKey("unheard-of").sign(clock.now())) == 401
    assert provider.asked == 2


async def test_a_key_that_was_taken_back_is_good_no_more(guarded: GuardedSite, provider: KeySetServer) -> None:
    clock = guarded.site.clock
    token = KEY.sign(clock.now())
    assert await status_of(guarded, token) == 200
    provider.publish(SigningKey("second").public())
    clock.advance(issuer_keys.AGAIN_S)
    assert await status_of(guarded, SigningKey("unheard-of").sign(clock.now())) == 401
    assert await status_of(guarded, token) == 401


async def test_known_keys_stay_good_while_the_provider_is_away(guarded: GuardedSite, provider: KeySetServer) -> None:
    clock = guarded.site.clock
    assert await status_of(guarded, KEY.sign(clock.now())) == 200
    await provider.stop()
    clock.advance(issuer_keys.AGAIN_S)
    assert await status_of(guarded, SigningKey("unheard-of").sign(clock.now())) == 401
    assert await status_of(guarded, KEY.sign(clock.now(), sub="another")) == 200


async def test_before_the_keys_were_seen_nothing_can_be_told(guarded: GuardedSite, provider: KeySetServer) -> None:
    port = provider.port
    await provider.stop()
    response = await guarded.get("/v1/jobs", KEY.sign(guarded.site.clock.now()))
    assert_problem(response, 503, "identity-provider-unavailable")
    assert response.headers["retry-after"]
    await provider.start(port)
    guarded.site.clock.advance(issuer_keys.AGAIN_S)
    assert await status_of(guarded, KEY.sign(guarded.site.clock.now())) == 200


@pytest.mark.parametrize(
    "member",
    [
        KEY.public(use="enc"),
        KEY.public(key_ops=["sign"]),
        KEY.public(alg="ES384"),
        KEY.public(crv="P-384"),
        KEY.public(x="!"),
        SigningKey("first", "RS256", bits=1024).public(),
        {"kty": "oct", "kid": "first", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": ["EC"]},
        {},
        None,
        7,
    ],
)
async def test_members_of_the_set_that_are_of_no_use(guarded: GuardedSite, provider: KeySetServer, member: Any) -> None:
    provider.publish(member)
    token = KEY.sign(guarded.site.clock.now())
    assert_problem(await guarded.get("/v1/jobs", token), 503, "identity-provider-unavailable")


async def test_a_key_without_an_id_is_found_if_it_is_the_only_one(guarded: GuardedSite, provider: KeySetServer) -> None:
    nameless = SigningKey(None)
    provider.publish(nameless.public(), RSA_KEY.public())
    assert await status_of(guarded, nameless.sign(guarded.site.clock.now())) == 200
    provider.publish(nameless.public(), KEY.public())
    guarded.site.clock.advance(issuer_keys.AGAIN_S)
    assert await status_of(guarded, SigningKey("unheard-of").sign(guarded.site.clock.now())) == 401
    assert await status_of(guarded, nameless.sign(guarded.site.clock.now())) == 401


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 2\r\n\r\n{}", "302"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}", "500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "nothing"),
        (b"", "nothing"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "cannot be asked"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (limits.KEY_SET_BYTES_MAX + 1), "more than"),
    ],
)
async def test_answers_that_are_no_key_set(provider: KeySetServer, answer: bytes, words: str) -> None:
    provider.answer = answer
    with pytest.raises(KeySetUnavailable, match=words):
        await KeySetUrl(provider.url).fetch()


async def test_an_answer_in_chunks_is_read(provider: KeySetServer) -> None:
    provider.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    assert await KeySetUrl(provider.url).fetch() == b"{}"


async def test_a_provider_that_never_answers_is_given_up(
    provider: KeySetServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEY_SET_S_MAX", 0.05)
    provider.may_answer.clear()
    with pytest.raises(KeySetUnavailable, match="took more than"):
        await KeySetUrl(provider.url).fetch()


async def test_a_key_set_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [KEY.public()]}))
    async with open_guarded_site(tmp_path, TOKENS | {"jwt_keys": f"file:{path}"}) as guarded:
        assert (await guarded.client.get("/v1/jobs", headers=bearer(KEY.sign(guarded.site.clock.now())))).is_success
    path.write_bytes(b" " * (limits.KEY_SET_BYTES_MAX + 1))
    with pytest.raises(KeySetUnavailable, match="more than"):
        await KeySetFile(path).fetch()
    path.unlink()
    with pytest.raises(KeySetUnavailable, match="cannot be read"):
        await KeySetFile(path).fetch()
