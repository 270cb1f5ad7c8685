"""How fast one may hand in work and read jobs: what is let through, what is refused, and what the header fields say."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_site import Connection, Site, open_site

from coatcheck.core.quotas import ALL, EACH, LimitKey, LimitName
from coatcheck.store.errors import StoreUnavailable

SUBMIT: LimitKey = (LimitName.SUBMIT_RATE, EACH, ALL)
SUBMIT_BURST: LimitKey = (LimitName.SUBMIT_BURST, EACH, ALL)
READ: LimitKey = (LimitName.READ_RATE, EACH, ALL)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


def refused(response: httpx.Response, status: int, code: str) -> int:
    """The seconds that a refusal asks to wait."""
    assert (response.status_code, response.json()["code"]) == (status, code)
    return int(response.headers["retry-after"])


async def submitted(site: Site, times: int) -> list[int]:
    answers = await asyncio.gather(*(site.submit() for _ in range(times)))
    return sorted(answer.status_code for answer in answers)


async def test_a_burst_is_a_second_s_worth_and_what_comes_after_it_waits_for_its_token(site: Site) -> None:
    site.limit({SUBMIT: 5})
    assert await submitted(site, 8) == [202] * 5 + [429] * 3
    wait_s = refused(await site.submit(), 429, "rate-limited")
    site.clock.advance(wait_s)
    assert (await site.submit()).status_code == 202


async def test_an_even_stream_at_the_limit_is_let_through(site: Site) -> None:
    site.limit({SUBMIT: 5})
    for _ in range(150):
        assert (await site.submit()).status_code == 202
        site.clock.advance(0.2)


async def test_a_stated_burst_holds_and_fills_up_again_at_the_rate(site: Site) -> None:
    site.limit({SUBMIT: 2, SUBMIT_BURST: 10})
    assert await submitted(site, 12) == [202] * 10 + [429] * 2
    site.clock.advance(2)
    assert await submitted(site, 6) == [202] * 4 + [429] * 2
    site.clock.advance(3600)
    assert await submitted(site, 12) == [202] * 10 + [429] * 2


async def test_no_window_lets_twice_the_limit_through_at_its_edge(site: Site) -> None:
    site.limit({SUBMIT: 100})
    accepted = 0
    for _ in range(50):
        accepted += (await submitted(site, 20)).count(202)
        site.clock.advance(0.1)
    assert accepted == 100 + 49 * 10


async def test_0_lets_nothing_through_and_nothing_configured_says_nothing(site: Site) -> None:
    response = await site.submit()
    assert not {"ratelimit", "ratelimit-policy"} & response.headers.keys()
    site.limit({SUBMIT: 0})
    assert refused(await site.submit(), 429, "rate-limited") == 3600
    assert response.status_code == 202


async def test_what_is_unlimited_for_one_tenant_is_not_limited_for_it(site: Site) -> None:
    site.limit({SUBMIT: 0, (LimitName.SUBMIT_RATE, "default", ALL): None})
    assert (await site.submit()).status_code == 202


async def test_the_narrowest_of_several_limits_holds_and_none_of_them_loses_a_token_to_a_refusal(site: Site) -> None:
    site.limit({SUBMIT: 10, (LimitName.SUBMIT_RATE, EACH, "reports"): 2})
    assert await submitted(site, 6) == [202] * 2 + [429] * 4
    others = [await site.client.post("/v1/brief", json={}) for _ in range(9)]
    assert [answer.status_code for answer in others] == [202] * 8 + [429]
    assert "in 'reports'" in (await site.submit()).json()["detail"]


async def test_what_all_tenants_share_is_refused_as_saturation_and_not_told(site: Site) -> None:
    site.limit({(LimitName.SUBMIT_RATE, ALL, ALL): 1})
    response = await site.submit()
    assert "ratelimit" not in response.headers
    assert refused(await site.submit(), 503, "saturated") == 1


async def test_what_is_not_accepted_takes_no_token_and_uses_up_no_key(site: Site) -> None:
    site.limit({SUBMIT: 2})
    first = await site.submit(Idempotency_Key="k1")
    for _ in range(5):
        assert (await site.submit(Idempotency_Key="k1")).headers["idempotent-replayed"] == "true"
        assert (await site.submit({"branch": "york"}, Idempotency_Key="k1")).status_code == 422
        assert (await site.submit({"branch": "?"})).status_code == 422
    second = await site.submit(Idempotency_Key="k2")
    assert second.status_code == 202
    refused(await site.submit(Idempotency_Key="k3"), 429, "rate-limited")
    site.clock.advance(1)
    third = await site.submit({"branch": "york"}, Idempotency_Key="k3")
    assert third.status_code == 202
    assert len({answer.headers["location"] for answer in (first, second, third)}) == 3


async def test_a_retry_with_its_key_finds_its_job_however_fast_the_tenant_was(site: Site) -> None:
    site.limit({SUBMIT: 1})
    lost = await site.submit(Idempotency_Key="k1")
    for _ in range(3):
        refused(await site.submit(), 429, "rate-limited")
        found = await site.submit(Idempotency_Key="k1")
        assert (found.status_code, found.headers["location"]) == (202, lost.headers["location"])
        assert found.headers["idempotent-replayed"] == "true"
        assert (await site.submit({"branch": "york"}, Idempotency_Key="k1")).status_code == 422
        refused(await site.submit(Idempotency_Key="k2"), 429, "rate-limited")


async def test_a_store_that_is_away_gives_the_token_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.limit({SUBMIT: 1})

    async def away(*_: Any) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(site.store, "accept_job", away)
        assert (await site.submit()).status_code == 503
    assert (await site.submit()).status_code == 202


async def test_the_fields_say_what_is_left(site: Site) -> None:
    site.limit({SUBMIT: 5, SUBMIT_BURST: 10, (LimitName.SUBMIT_RATE, EACH, "reports"): 0.25})
    accepted, turned_away = await site.submit(), await site.submit()
    policy = '"submit-reports";q=1;w=4, "submit";q=10;w=2'
    assert accepted.headers["ratelimit-policy"] == turned_away.headers["ratelimit-policy"] == policy
    assert accepted.headers["ratelimit"] == '"submit-reports";r=0;t=4, "submit";r=9;t=1'
    assert turned_away.headers["ratelimit"] == accepted.headers["ratelimit"]
    assert refused(turned_away, 429, "rate-limited") == 4


async def test_a_change_of_the_rate_keeps_what_is_missing(site: Site) -> None:
    site.limit({SUBMIT: 10})
    assert await submitted(site, 10) == [202] * 10
    site.limit({SUBMIT: 20})
    assert await submitted(site, 20) == [202] * 10 + [429] * 10
    site.limit({SUBMIT: 5})
    assert await submitted(site, 1) == [429]
    site.clock.advance(0.4)
    assert await submitted(site, 3) == [202] * 2 + [429]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Tenant", "X-Consumer-Username"])
async def test_no_header_that_a_client_makes_up_gives_it_another_bucket(site: Site, header: str) -> None:
    site.limit({SUBMIT: 3})
    answers = [await site.submit(**{header.replace("-", "_"): f"192.0.2.{number}"}) for number in range(9)]
    assert [answer.status_code for answer in answers] == [202] * 3 + [429] * 6


async def test_reads_of_every_kind_count_once_each(site: Site) -> None:
    url = await site.accepted()
    site.limit({READ: 6})
    etag = (await site.client.get(url)).headers["etag"]
    unchanged = await site.client.get(url, headers={"if-none-match": etag})
    assert (unchanged.status_code, unchanged.headers["ratelimit"]) == (304, '"read";r=4;t=1')
    for method, path in (("HEAD", url), ("GET", url + "/attempts"), ("GET", "/reports"), ("GET", "/v1/jobs")):
        assert (await site.client.request(method, path)).status_code == 200
    for path in (url, url + "/result", url + "/attempts", "/reports", "/v1/jobs", "/v1/brief/job_unknown"):
        response = await site.client.get(path)
        assert refused(response, 429, "polling-too-fast") == 1
        assert response.headers["ratelimit-policy"] == '"read";q=6;w=1'
    assert site.metrics.read("reads_refused", route="/reports/{id}") == 1
    assert (await site.client.get("/livez")).status_code == 200
    assert (await site.submit()).status_code == 202
    assert (await site.client.post(url + "/cancel")).status_code == 200


async def test_a_held_read_and_a_stream_count_when_they_begin(site: Site) -> None:
    url = await site.accepted()
    site.limit({READ: 2})
    held = Connection(site, "GET", url, {"prefer": "wait=20"})
    stream = Connection(site, "GET", url, {"accept": "text/event-stream"})
    begun = await stream.next()
    assert (b"ratelimit", b'"read";r=0;t=1') in begun["headers"]
    assert refused(await site.client.get(url), 429, "polling-too-fast") == 1
    await site.client.post(url + "/cancel")
    assert (await held.next())["status"] == 200
    await stream.end()


async def test_a_limit_of_reads_alone_leaves_submissions_as_they_are(site: Site) -> None:
    site.limit({READ: 1})
    assert "ratelimit" not in (await site.submit()).headers


async def test_limits_of_settings_and_declarations_hold(tmp_path: Path) -> None:
    async with open_site(tmp_path, {"tenant_submit_rate": 3, "tenant_submit_burst": 1}) as site:
        assert await submitted(site, 3) == [202, 429, 429]
