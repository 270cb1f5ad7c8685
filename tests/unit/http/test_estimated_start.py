"""Job-Estimated-Start: on the 202 and on every poll of a waiting job, refined, and absent while nothing is known."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from http_site import Site, open_site

from coatcheck.admission.forecasts import BUSY_MEASURES_MIN, RUNS_MIN
from coatcheck.admission.measures import FRESH_S

RUN_S = 2.0


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


def start_of(response: httpx.Response) -> float:
    """The seconds from the test's beginning to the estimated start."""
    began = datetime.fromisoformat("2026-01-05T08:00:00Z")
    return (datetime.fromisoformat(response.headers["job-estimated-start"]) - began).total_seconds()


async def ran(site: Site, times: int) -> None:
    for _ in range(times):
        await site.accepted()
        claim = await site.claim()
        site.clock.advance(RUN_S)
        await site.finish(claim)


async def measured(site: Site, times: int = 1) -> None:
    for _ in range(times):
        site.clock.advance(FRESH_S)
        site.measures.look()
        await site.measures.measured()


async def test_it_is_absent_while_nothing_is_known(site: Site) -> None:
    response = await site.submit()
    assert "job-estimated-start" not in response.headers
    await measured(site, BUSY_MEASURES_MIN)
    assert "job-estimated-start" not in (await site.client.get(response.headers["location"])).headers


async def test_on_an_idle_queue_it_is_now_and_for_a_later_start_that_start(site: Site) -> None:
    await ran(site, RUNS_MIN)
    await measured(site)
    now_s = site.clock.monotonic_s()
    assert start_of(await site.submit()) == pytest.approx(now_s, abs=0.01)
    assert start_of(await site.submit(Job_Start_After="90")) == pytest.approx(now_s + 90, abs=0.01)


async def test_each_poll_of_a_waiting_job_refines_it_until_it_runs(site: Site) -> None:
    await ran(site, RUNS_MIN)
    urls = []
    for _ in range(11):
        urls.append(await site.accepted())
        site.clock.advance(0.01)
    first = await site.claim()
    await measured(site, BUSY_MEASURES_MIN)
    now_s = site.clock.monotonic_s()
    # One at a time: nine are before the last one, and ten before a new one.
    last = await site.client.get(urls[-1])
    assert start_of(last) == pytest.approx(now_s + 9 * RUN_S, abs=0.1)
    new = await site.submit()
    assert start_of(new) == pytest.approx(now_s + 10 * RUN_S, abs=0.1)
    middle = await site.client.get(urls[6], headers={"if-none-match": 'W/"none"'})
    assert start_of(middle) == pytest.approx(now_s + 5 * RUN_S, abs=0.3)
    for _ in range(4):
        await site.finish(first)
        first = await site.claim()
        await measured(site, 2)
    sooner = await site.client.get(urls[-1])
    assert start_of(sooner) == pytest.approx(site.clock.monotonic_s() + 5 * RUN_S, abs=0.4)
    unchanged = await site.client.get(urls[-1], headers={"if-none-match": sooner.headers["etag"]})
    assert unchanged.status_code == 304
    assert start_of(unchanged) == start_of(sooner)
    assert "job-estimated-start" not in (await site.client.get(urls[4])).headers


async def test_it_is_looked_up_afterwards_how_well_estimates_held(site: Site) -> None:
    await ran(site, RUNS_MIN)
    await measured(site)
    in_time = await site.accepted()
    await site.claim()
    await measured(site)
    cancelled = await site.accepted()
    await site.client.post(cancelled + "/cancel")
    await measured(site)
    late = await site.accepted()
    site.clock.advance(5)
    await site.services.start_checks.check_due()
    assert (await site.client.get(in_time)).json()["status"] == "running"
    assert (await site.client.get(late)).json()["status"] == "queued"
    assert site.metrics.read("estimated_starts", operation="reports", held="yes") == 1
    assert site.metrics.read("estimated_starts", operation="reports", held="no") == 1
    assert await site.services.start_checks.check_due() > 1
