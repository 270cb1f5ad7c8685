"""What work costs and what budgets refuse, as clients see it; and what becomes of a cost that cannot be worked out."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from http_site import Site, open_site

from coatcheck.core.costs import BUDGET, DEFAULT_WINDOW_S, window_of
from coatcheck.core.quotas import ALL, EACH

DAILY = (f"{BUDGET}tokens", EACH, ALL)
ONLY_PRICED = (f"{BUDGET}tokens", EACH, "priced")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def _post(site: Site, tokens: object, **headers: str) -> "tuple[int, dict[str, str], dict[str, object]]":
    response = await site.client.post("/v1/priced", json={"tokens": tokens}, headers=headers)
    return response.status_code, dict(response.headers), response.json()


async def test_work_is_accepted_while_it_fits_and_refused_until_its_window_ends(site: Site) -> None:
    site.limit({DAILY: 10_000})
    assert (await _post(site, 9_000))[0] == 202
    status, headers, problem = await _post(site, 1_001)
    left_s = -(-(window_of(site.clock.now(), DEFAULT_WINDOW_S).ends_at - site.clock.now()) // 1000)
    assert (status, problem["code"]) == (429, "budget-exceeded")
    assert problem["detail"] == "This work costs 1001 tokens; 1000 of this tenant's 10000 are left."
    assert headers["retry-after"] == str(left_s)
    assert headers["ratelimit-policy"] == '"tokens";q=10000;w=86400'
    assert headers["ratelimit"] == f'"tokens";r=1000;t={left_s}'
    assert (await _post(site, 1_000))[0] == 202
    site.clock.advance(left_s)
    assert (await _post(site, 10_000))[0] == 202


async def test_an_operation_s_own_budget_has_its_own_name(site: Site) -> None:
    site.limit({DAILY: 100, ONLY_PRICED: 10})
    status, headers, problem = await _post(site, 11)
    assert (status, headers["ratelimit-policy"]) == (429, '"tokens-priced";q=10;w=86400')
    assert problem["detail"] == "This work costs 11 tokens; 10 of this tenant's 10 in 'priced' are left."


async def test_a_refused_request_keeps_its_key_free_and_a_replay_is_not_charged(site: Site) -> None:
    site.limit({DAILY: 10})
    assert (await _post(site, 11, **{"Idempotency-Key": "one"}))[0] == 429
    for _ in range(3):
        assert (await _post(site, 10, **{"Idempotency-Key": "one"}))[0] == 202
    assert site.metrics.read("cost_accepted", operation="priced", kind="tokens") == 10
    assert site.metrics.read("refused", operation="priced", code="budget-exceeded") == 1


async def test_without_a_budget_work_is_charged_and_never_refused(site: Site) -> None:
    assert (await _post(site, 10**9))[0] == 202
    (row,) = await site.store.list_spending("default", 10)
    assert (row.kind, row.operation, row.charged) == ("tokens", "priced", 10**15)


@pytest.mark.parametrize("tokens", ["raise", -1, 1e300])
async def test_a_cost_that_cannot_be_worked_out_is_the_service_s_fault(site: Site, tokens: object) -> None:
    status, _, problem = await _post(site, tokens, **{"Idempotency-Key": "one"})
    assert (status, problem["code"]) == (500, "internal-error")
    assert (await _post(site, 5, **{"Idempotency-Key": "one"}))[0] == 202
