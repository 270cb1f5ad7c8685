"""What a tenant is told whose queue is full: how many wait, how many may, and when to come back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from http_site import Site, open_site

from coatcheck.admission.queue_full import jobs_too_many, queue_full
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, EACH, Limit, LimitKey, LimitName
from coatcheck.store.records import QueueFull

OVER_ALL: LimitKey = (LimitName.QUEUED, EACH, ALL)
IN_REPORTS: LimitKey = (LimitName.QUEUED, EACH, "reports")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("key", "name", "where"), [(OVER_ALL, "queued", ""), (IN_REPORTS, "queued-reports", " in 'reports'")]
)
async def test_a_full_queue_is_refused_and_says_which_limit_it_is(
    site: Site, key: LimitKey, name: str, where: str
) -> None:
    site.limit({key: 2})
    assert [(await site.submit()).status_code for _ in range(2)] == [202, 202]
    refused = await site.submit()
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (429, "too-many-queued")
    assert problem["detail"] == f"2 jobs of this tenant are queued{where}, and no more than 2 may be."
    wait_s = refused.headers["retry-after"]
    assert refused.headers["ratelimit-policy"] == f'"{name}";q=2;qu="concurrent-requests"'
    assert refused.headers["ratelimit"] == f'"{name}";r=0;t={wait_s}'
    assert site.metrics.read("refused", operation="reports", code="too-many-queued") == 1


async def test_a_job_that_starts_makes_room_and_a_replay_needs_none(site: Site) -> None:
    site.limit({OVER_ALL: 1})
    first = await site.submit(Idempotency_Key="k1")
    assert (await site.submit(Idempotency_Key="k2")).status_code == 429
    again = await site.submit(Idempotency_Key="k1")
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    await site.claim()
    assert (await site.submit({"branch": "york"}, Idempotency_Key="k2")).status_code == 202


async def test_nothing_is_queued_where_none_may_be(site: Site) -> None:
    site.limit({IN_REPORTS: 0})
    refused = await site.submit()
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-queued")
    assert int(refused.headers["retry-after"]) == 60


@pytest.mark.parametrize(("queued", "most", "too_many"), [(5, 5, 1), (9, 5, 5), (0, 0, float("inf"))])
def test_the_wait_is_for_as_many_starts_as_are_needed(queued: int, most: int, too_many: float) -> None:
    full = QueueFull(Limit(OVER_ALL, most), queued)
    assert jobs_too_many(full) == too_many
    refused = queue_full(full, 7)
    assert isinstance(refused, Refused)
    assert ("Retry-After", "7") in refused.headers
