"""Jobs of an operation that this build does not declare: what lists name can be read, cancelled and erased."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from http_site import Site, open_site, submission_of
from test_handing_in import assert_problem

from coatcheck.core.outcome import ResultBody, Succeeded
from coatcheck.core.policy import DEFAULT_POLICY
from coatcheck.store.records import Accepted, Claim, ClaimRequest, Finishing

RETIRED = "retired"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def accept(site: Site, operation: str = RETIRED) -> str:
    """The id of a job that another build accepted."""
    answer = await site.store.accept_job(submission_of(operation, site.clock.now()))
    assert isinstance(answer, Accepted)
    return answer.job.id


async def start(site: Site) -> Claim:
    """The job as the other build starts it."""
    request = ClaimRequest("worker-2", 1, {RETIRED: 1}, {RETIRED: DEFAULT_POLICY})
    return (await site.store.claim_ready(request, site.clock.now())).claims[0]


async def listed(site: Site) -> dict[str, str]:
    """The one job of the list of all operations."""
    (job,) = (await site.client.get("/v1/jobs")).json()["jobs"]
    assert job["operation"] == RETIRED
    urls: dict[str, str] = job
    return urls


async def test_every_url_of_a_listed_job_answers(site: Site) -> None:
    job_id = await accept(site)
    job = await listed(site)
    assert job["status_url"] == f"/v1/{RETIRED}/{job_id}"
    read = await site.client.get(job["status_url"])
    assert (read.status_code, read.json()) == (200, job)
    unchanged = await site.client.get(job["status_url"], headers={"If-None-Match": read.headers["etag"]})
    assert unchanged.status_code == 304
    assert (await site.client.head(job["status_url"])).status_code == 200
    assert_problem(await site.client.get(job["result_url"]), 409, "job-not-finished")
    assert (await site.client.get(job["status_url"] + "/attempts")).json() == {"attempts": []}
    cancelled = await site.client.post(job["cancel_url"], json={"reason": "Not needed"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (await site.client.delete(job["status_url"])).status_code == 204
    assert_problem(await site.client.get(job["status_url"]), 410, "job-expired")


async def test_its_result_is_there(site: Site) -> None:
    await accept(site)
    claim = await start(site)
    done = Succeeded(ResultBody("text/csv", b"a,b"))
    await site.store.finish_attempt(Finishing(claim.lease, done, DEFAULT_POLICY, 0.5), site.clock.now())
    result = await site.client.get((await listed(site))["result_url"])
    assert (result.status_code, result.content) == (200, b"a,b")


async def test_nothing_is_handed_in_or_listed_there(site: Site) -> None:
    job_id = await accept(site)
    assert_problem(await site.client.post(f"/v1/{RETIRED}", json={}), 404, "not-found")
    assert_problem(await site.client.get(f"/v1/{RETIRED}"), 404, "not-found")
    assert_problem(await site.client.post(f"/v1/{RETIRED}/{job_id}", json={}), 405, "method-not-allowed")


async def test_a_job_is_found_under_its_own_operation_alone(site: Site) -> None:
    job_id, declared = await accept(site), (await site.accepted()).rpartition("/")[2]
    paths = [
        *(f"/v1/another/{job_id}", f"/reports/{job_id}", f"/v1/reports/{job_id}", f"/v1/reports/{declared}"),
        *(f"/v1/{RETIRED}/{declared}", f"/v1/{RETIRED}/{job_id[:-1]}", f"/v1/{RETIRED}/{job_id}/payload"),
        *(f"/v1/{RETIRED}/{job_id}/", f"/v2/{RETIRED}/{job_id}", f"/v1/{RETIRED.upper()}/{job_id}"),
    ]
    for path in paths:
        assert_problem(await site.client.get(path), 404, "not-found")


async def test_metrics_name_no_operation_that_a_client_made_up(site: Site) -> None:
    job_id = await accept(site)
    for name in ("made-up", RETIRED):
        await site.client.get(f"/v1/{name}/{job_id}")
    text = site.metrics.render()[0].decode()
    assert "made-up" not in text
    route, labels = "/v1/{operation}/{id}", {"method": "GET"}
    assert site.metrics.read("http_requests", route=route, status="404", **labels) == 1
    assert site.metrics.read("http_requests", route=route, status="200", **labels) == 1
