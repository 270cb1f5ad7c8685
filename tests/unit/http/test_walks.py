"""Two walks over all routes: without credentials, and with those of another tenant."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from guarded_site import GuardedSite, bearer, open_guarded_site
from http_site import Connection, submission_of
from msgspec import structs
from test_handing_in import assert_problem

from coatcheck.core.ids import is_job_id, make_job_id
from coatcheck.http.dispatch import Resource, Resources
from coatcheck.http.services import HttpServices
from coatcheck.store.records import Accepted

UNDECLARED = "gone"
OPEN = {"/livez", "/readyz"}
OPEN_DOCUMENTS = ("/openapi.json", "/docs", "/problems", "/problems/forbidden", "/nothing")


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[GuardedSite]:
    async with open_guarded_site(tmp_path, {"operator_key": "the-key-of-those-who-look-after-it-all"}) as opened:
        yield opened


def all_resources(services: HttpServices) -> Iterator[Resource]:
    """Every resource of the route table, found as a request finds it."""
    resources = Resources(services)
    for held in (resources._exact, resources._jobs):
        yield from held.values()
    for parts in resources._parts.values():
        yield from parts.values()
    for part in ("", "/result", "/cancel", "/attempts", "/view-token", "/view-session"):
        found = resources.find(f"/v1/{UNDECLARED}/{make_job_id(1, 1)}{part}")
        assert found is not None, part
        yield found[0]


async def test_no_route_but_the_open_ones_answers_without_a_credential(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    walked = set()
    for resource in all_resources(guarded.site.services):
        path = resource.route.replace("{id}", url.rpartition("/")[2]).replace("{operation}", UNDECLARED)
        for method in resource.methods:
            response = await guarded.client.request(method, path)
            if resource.route in OPEN:
                assert response.status_code == 200, resource.route
            else:
                assert response.status_code == 401, f"{method} {resource.route}"
                assert response.headers["www-authenticate"]
            walked.add(f"{method} {resource.route}")
    assert {"POST /reports", "GET /reports/{id}", "DELETE /reports/{id}", "POST /reports/{id}/view-token"} <= walked
    assert {
        "GET /metrics",
        "GET /v1/jobs",
        "GET /admin/tenants",
        "POST /admin/tenants/{id}/keys",
        "HEAD /reports/{id}/result",
        "POST /reports/{id}/cancel",
        "GET /v1/{operation}/{id}",
        "POST /v1/{operation}/{id}/cancel",
    } <= walked
    for path in OPEN_DOCUMENTS:
        assert (await guarded.client.get(path)).status_code in (200, 404)


async def test_a_clients_key_opens_no_route_of_operators(guarded: GuardedSite) -> None:
    walked = 0
    for resource in all_resources(guarded.site.services):
        if resource.route.startswith("/admin/"):
            for method in resource.methods:
                response = await guarded.client.request(
                    method, resource.route.replace("{id}", "ours"), headers=bearer(guarded.key)
                )
                assert response.status_code == 403, f"{method} {resource.route}"
                walked += 1
    assert walked >= 10


async def test_every_route_of_a_job_is_not_found_by_another_tenant(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    await guarded.site.finish(await guarded.site.claim())
    waiting = await guarded.accepted()
    walked = 0
    for resource in all_resources(guarded.site.services):
        if "{id}" not in resource.route or resource.operation is None or resource.operation.name != "reports":
            continue
        for one in (url, waiting):
            path = resource.route.replace("{id}", one.rpartition("/")[2])
            for method in resource.methods:
                if resource.route.endswith("/view-session"):
                    continue
                theirs = await guarded.client.request(method, path, headers=bearer(guarded.other_key))
                assert theirs.status_code == 404, f"{method} {resource.route}"
                if method != "HEAD":
                    assert_problem(theirs, 404, "not-found")
                walked += 1
    assert walked >= 16
    assert (await guarded.get(url)).json()["status"] == "succeeded"
    assert (await guarded.get(waiting)).json()["cancel_requested"] is False


async def test_a_job_of_an_undeclared_operation_is_its_tenants_own(guarded: GuardedSite) -> None:
    store, now = guarded.site.store, guarded.site.clock.now()
    answer = await store.accept_job(structs.replace(submission_of(UNDECLARED, now), tenant="ours"))
    assert isinstance(answer, Accepted)
    job_id = answer.job.id
    url = f"/v1/{UNDECLARED}/{job_id}"
    assert (await guarded.get(url)).json()["id"] == job_id
    for method, part in (("GET", ""), ("DELETE", ""), ("GET", "/result"), ("GET", "/attempts"), ("POST", "/cancel")):
        theirs = await guarded.client.request(method, url + part, headers=bearer(guarded.other_key))
        assert_problem(theirs, 404, "not-found")
    assert (await guarded.get(url)).json()["status"] == "queued"


async def test_another_tenants_stream_and_wait_are_not_found(guarded: GuardedSite) -> None:
    url = await guarded.accepted()
    headers = bearer(guarded.other_key)
    stream = Connection(guarded.site, "GET", url, headers | {"Accept": "text/event-stream"})
    assert (await stream.next())["status"] == 404
    await stream.end()
    assert (await guarded.client.get(url, headers=headers | {"Prefer": "wait=20"})).status_code == 404
    assert (await guarded.client.get(url, headers=headers | {"If-None-Match": "*"})).status_code == 404


async def test_lists_are_each_tenants_own(guarded: GuardedSite) -> None:
    ours, theirs = await guarded.accepted(), await guarded.accepted(guarded.other_key)
    for path in ("/reports", "/v1/jobs", "/reports?status=queued"):
        jobs = (await guarded.get(path)).json()["jobs"]
        assert [job["status_url"] for job in jobs] == [ours]
        jobs = (await guarded.get(path, guarded.other_key)).json()["jobs"]
        assert [job["status_url"] for job in jobs] == [theirs]


async def test_a_cursor_leads_nobody_into_another_tenants_jobs(guarded: GuardedSite) -> None:
    for _ in range(2):
        await guarded.accepted()
    cursor = (await guarded.get("/reports?limit=1")).json()["next_cursor"]
    stolen = await guarded.get(f"/reports?limit=1&cursor={cursor}", guarded.other_key)
    assert stolen.status_code in (200, 400)
    assert stolen.json().get("jobs", []) == []


async def test_an_idempotency_key_is_each_tenants_own(guarded: GuardedSite) -> None:
    ours = await guarded.submit(Idempotency_Key="one")
    theirs = await guarded.submit(guarded.other_key, Idempotency_Key="one")
    assert "idempotent-replayed" not in theirs.headers
    assert ours.json()["id"] != theirs.json()["id"]
    again = await guarded.submit(Idempotency_Key="one")
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["id"] == ours.json()["id"]
    assert is_job_id(again.json()["id"])
