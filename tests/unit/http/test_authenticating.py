"""API keys at the edge: who gets in, who does not, what the store is asked, and how soon a change counts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from guarded_site import ALL_SCOPES, FORGOTTEN_S, GuardedSite, bearer, open_guarded_site
from test_handing_in import assert_problem

from coatcheck.core import limits
from coatcheck.core.tenancy import Revocation
from coatcheck.store.controls import ApiKey


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path) as opened:
        yield opened


class Reads:
    """Counts how often the store is asked for a key."""

    def __init__(self, guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._find = guarded.site.store.find_key
        monkeypatch.setattr(guarded.site.store, "find_key", self._counted)

    async def _counted(self, key_id: str) -> ApiKey | None:
        self.count += 1
        return await self._find(key_id)


async def test_a_key_is_taken_in_either_header(guarded: GuardedSite) -> None:
    for headers in (bearer(guarded.key), {"Authorization": f"bearer  {guarded.key}"}, {"apikey": guarded.key}):
        response = await guarded.client.post("/reports", json={"branch": "leeds"}, headers=headers)
        assert response.status_code == 202
        assert (await guarded.get(response.headers["location"])).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", "Basic b3VyczpzZWNyZXQ=")],
        [("Authorization", "{key}")],
        [("Authorization", "Bearer {key}x")],
        [("Authorization", "Bearer {key} ,")],
        [("Authorization", "Bearer cck_999999999999_" + "0" * 43)],
        [("Authorization", "Bearer cct_" + "0" * 43)],
        [("Authorization", "Bearer " + "x" * 10_000)],
        [("Authorization", "Bearer schlüssel")],
        [("Authorization", "Bearer e30.e30.e30")],
        [("Authorization", "Bearer {key}"), ("Authorization", "Bearer {key}")],
        [("Authorization", "Bearer {key}"), ("apikey", "{key}")],
        [("apikey", "")],
        [("apikey", "Bearer {key}")],
        [("apikey", "{key}"), ("apikey", "{key}")],
        [("X-Consumer-Username", "ours")],
        [("Cookie", "coatcheck_view={key}")],
    ],
)
async def test_what_is_no_credential_is_refused_in_one_way(
    guarded: GuardedSite, headers: list[tuple[str, str]]
) -> None:
    given = [(name.encode(), value.format(key=guarded.key).encode("latin-1")) for name, value in headers]
    response = await guarded.client.get("/v1/jobs", headers=[*given, (b"X-Correlation-ID", b"one")])
    assert_problem(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"] == 'Bearer realm="coatcheck"'
    plain = await guarded.client.get("/v1/jobs", headers={"X-Correlation-ID": "one"})
    assert response.content == plain.content


async def test_unknown_wrong_revoked_and_expired_keys_are_refused_alike(guarded: GuardedSite) -> None:
    now = guarded.site.clock.now()
    revoked, expired = await guarded.add_key(), await guarded.add_key(expires_at=now + 1)
    await guarded.revoke_key(revoked)
    guarded.forget()
    wrong, unknown = guarded.key[:-1] + "x", guarded.key.replace("cck_0", "cck_9", 1)
    answers = [await guarded.get("/v1/jobs", key, X_Correlation_ID="a") for key in (revoked, expired, wrong, unknown)]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert len({tuple(sorted(answer.headers.items())) for answer in answers}) == 1


async def test_a_refusal_comes_before_the_body_is_looked_at(guarded: GuardedSite) -> None:
    response = await guarded.client.post("/reports", content=b"{nothing", headers={"Content-Type": "text/plain"})
    assert_problem(response, 401, "unauthenticated")


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("submit", "POST", "/reports"),
        ("read", "GET", "/reports"),
        ("read", "GET", "{job}"),
        ("read", "GET", "{job}/result"),
        ("read", "GET", "{job}/attempts"),
        ("read", "GET", "/v1/jobs"),
        ("read", "POST", "{job}/view-token"),
        ("cancel", "POST", "{job}/cancel"),
        ("cancel", "DELETE", "{job}"),
    ],
)
async def test_each_method_takes_its_scope_and_no_other(
    guarded: GuardedSite, scope: str, method: str, path: str
) -> None:
    url = path.format(job=await guarded.accepted())
    others = await guarded.add_key(scopes=tuple(one for one in (*ALL_SCOPES, "admin") if one != scope))
    guarded.forget()
    refused = await guarded.client.request(method, url, headers=bearer(others))
    assert_problem(refused, 403, "forbidden")
    assert f"scope {scope}" in refused.json()["detail"]
    only = await guarded.add_key(scopes=(scope, "unheard-of"))
    guarded.forget()
    assert (await guarded.client.request(method, url, headers=bearer(only))).status_code not in (401, 403)


async def test_a_known_key_costs_no_read_of_the_store(guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(guarded, monkeypatch)
    for _ in range(5):
        assert (await guarded.get("/v1/jobs")).status_code == 200
    unknown = guarded.key.replace("cck_0", "cck_9", 1)
    for _ in range(5):
        assert (await guarded.get("/v1/jobs", unknown)).status_code == 401
    assert reads.count == 2


async def test_who_comes_at_once_with_one_key_asks_once(guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(guarded, monkeypatch)
    answers = await asyncio.gather(*(guarded.get("/v1/jobs") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert reads.count == 1


async def test_guesses_push_no_known_key_out(guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CREDENTIALS_UNKNOWN_MAX", 3)
    assert (await guarded.get("/v1/jobs")).status_code == 200
    for number in range(10):
        guess = f"cck_9{number:011d}_" + "0" * 43
        assert (await guarded.get("/v1/jobs", guess)).status_code == 401
    reads = Reads(guarded, monkeypatch)
    assert (await guarded.get("/v1/jobs")).status_code == 200
    assert reads.count == 0


async def test_a_revoked_key_is_dead_within_a_second(guarded: GuardedSite) -> None:
    assert (await guarded.get("/v1/jobs")).status_code == 200
    await guarded.revoke_key(guarded.key)
    guarded.site.clock.advance(FORGOTTEN_S)
    assert_problem(await guarded.get("/v1/jobs"), 401, "unauthenticated")
    assert (await guarded.get("/v1/jobs", guarded.other_key)).status_code == 200


async def test_a_read_that_a_revocation_overtakes_is_not_remembered(
    guarded: GuardedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, find = guarded.site.store, guarded.site.store.find_key
    was_read, may_return = asyncio.Event(), asyncio.Event()

    async def slow(key_id: str) -> ApiKey | None:
        record = await find(key_id)
        if not was_read.is_set():
            was_read.set()
            await may_return.wait()
        return record

    monkeypatch.setattr(store, "find_key", slow)
    asking = asyncio.ensure_future(guarded.get("/v1/jobs"))
    await was_read.wait()
    await guarded.revoke_key(guarded.key)
    guarded.forget()
    await guarded.site.services.directory.refresh()
    may_return.set()
    assert_problem(await asking, 401, "unauthenticated")
    assert_problem(await guarded.get("/v1/jobs"), 401, "unauthenticated")


async def test_expiry_is_by_the_clock_of_each_request(guarded: GuardedSite) -> None:
    key = await guarded.add_key(expires_at=guarded.site.clock.now() + 10_000)
    guarded.forget()
    assert (await guarded.get("/v1/jobs", key)).status_code == 200
    guarded.site.clock.advance(8.999)
    assert (await guarded.get("/v1/jobs", key)).status_code == 200
    guarded.site.clock.advance(0.001)
    assert_problem(await guarded.get("/v1/jobs", key), 401, "unauthenticated")


async def test_a_new_key_is_good_at_once_though_it_was_guessed_before(guarded: GuardedSite) -> None:
    guess = "cck_000000000003_" + f"{3:043d}"
    assert (await guarded.get("/v1/jobs", guess)).status_code == 401
    assert await guarded.add_key() == guess
    guarded.forget()
    assert (await guarded.get("/v1/jobs", guess)).status_code == 200


async def test_when_a_key_was_used_is_written_now_and_then(guarded: GuardedSite) -> None:
    authentication = guarded.site.services.authentication
    assert authentication is not None
    await guarded.get("/v1/jobs")
    guarded.site.clock.advance(0.5)
    await guarded.get("/v1/jobs")
    used_at = guarded.site.clock.now()
    assert [key.last_used_at for key in await guarded.site.store.list_keys("ours")] == [None]
    await authentication.stop()
    assert [key.last_used_at for key in await guarded.site.store.list_keys("ours")] == [used_at]
    assert [key.last_used_at for key in await guarded.site.store.list_keys("theirs")] == [None]


@pytest.mark.parametrize("policy", [Revocation.FINISH, Revocation.QUARANTINE, Revocation.CANCEL])
async def test_a_revoked_tenant_reads_and_cancels_and_hands_in_nothing(
    guarded: GuardedSite, policy: Revocation
) -> None:
    url = await guarded.accepted()
    await guarded.revoke_tenant("ours", policy)
    guarded.forget()
    assert_problem(await guarded.submit(), 403, "tenant-suspended")
    assert (await guarded.get(url)).status_code == 200
    assert (await guarded.client.post(f"{url}/cancel", headers=bearer(guarded.key))).status_code in (200, 202)
    assert (await guarded.submit(guarded.other_key)).status_code == 202


async def test_an_erased_tenant_is_nobody(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    await guarded.revoke_tenant("ours", Revocation.ERASE)
    guarded.forget()
    for response in (await guarded.get(url), await guarded.get("/v1/jobs"), await guarded.submit()):
        assert_problem(response, 401, "unauthenticated")


async def test_a_restored_tenant_hands_in_again(guarded: GuardedSite) -> None:
    await guarded.revoke_tenant("ours", Revocation.QUARANTINE)
    guarded.forget()
    assert (await guarded.submit()).status_code == 403
    await guarded.restore_tenant("ours")
    guarded.forget()
    assert (await guarded.submit()).status_code == 202


async def test_refusals_are_counted_by_their_reason(guarded: GuardedSite) -> None:
    seen: dict[str, Any] = {
        "missing": {},
        "malformed": {"Authorization": "Bearer x"},
        "ambiguous": {"Authorization": f"Bearer {guarded.key}", "apikey": guarded.key},
        "unknown": bearer(guarded.key.replace("cck_0", "cck_9", 1)),
        "wrong": bearer(guarded.key[:-1] + "x"),
    }
    for headers in seen.values():
        await guarded.client.get("/v1/jobs", headers=headers)
    assert [guarded.site.metrics.read("unauthenticated", reason=reason) for reason in seen] == [1] * len(seen)
