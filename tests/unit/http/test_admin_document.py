"""/admin/openapi.json: valid, for operators alone, and true of every route, parameter and body."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from admin_contract import AdminContract
from admin_desk import BEARER, Desk, open_desk
from http_site import make_app, open_site
from openapi_spec_validator import OpenAPIV31SpecValidator

from coatcheck.core.ids import make_job_id
from coatcheck.core.problems import PROBLEMS
from coatcheck.http.dispatch import Resources
from coatcheck.http.openapi import build_openapi
from coatcheck.settings import Settings

READERS = ("get", "put", "delete")
JOB_ID = make_job_id(0, 0)


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path, auth="keys") as desk:
        yield desk


def url_of(path: str) -> str:
    """A URL of the path, whose id has the form that such ids have."""
    is_job = path.startswith(("/admin/jobs", "/admin/dead-letters"))
    return path.replace("{id}", JOB_ID if is_job else "queued")


async def ask(desk: Desk, method: str, path: str, body: object | None = None) -> httpx.Response:
    return await desk.site.client.request(method.upper(), path, json=body, headers=BEARER)


async def test_it_is_valid_openapi_and_never_kept(desk: Desk) -> None:
    answer = await ask(desk, "get", "/admin/openapi.json")
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("application/json", "no-store")
    OpenAPIV31SpecValidator(answer.json()).validate()
    assert (await ask(desk, "get", "/admin/openapi.json")).content == answer.content


async def test_it_is_for_operators_alone(desk: Desk, tmp_path: Path) -> None:
    assert (await desk.site.client.get("/admin/openapi.json")).status_code == 401
    public = build_openapi(make_app(), Settings(operator_key="k" * 40))
    assert "/admin" not in json.dumps(public["paths"])
    assert "/admin" not in (await desk.site.client.get("/openapi.json")).text
    (tmp_path / "open").mkdir()
    async with open_site(tmp_path / "open") as site:
        assert (await site.client.get("/admin/openapi.json")).status_code == 404


async def test_its_routes_are_those_that_are_served(desk: Desk) -> None:
    resources = Resources(desk.site.services)
    parts = [resource for named in resources._parts.values() for resource in named.values()]
    everything = [*resources._exact.values(), *resources._jobs.values(), *parts]
    served = {
        (resource.route, method.lower())
        for resource in everything
        for method in resource.methods
        if resource.route.startswith("/admin/") and method != "HEAD"
    }
    routes = list(desk.contract.routes())
    assert {(path, method) for path, method, _ in routes} == served
    assert len({route["operationId"] for _, _, route in routes}) == len(served) > 30
    assert all(route["summary"] for _, _, route in routes)


async def test_each_route_asks_for_a_credential(desk: Desk) -> None:
    for path, method, route in desk.contract.routes():
        assert (await desk.site.client.request(method.upper(), url_of(path))).status_code == 401
        assert [*route["security"]] == [{"operator": []}, {"apiKeyBearer": []}, {"apiKeyHeader": []}]
        assert {"401", "403", "404", "500", "503"} <= route["responses"].keys()


async def test_each_route_knows_the_parameters_that_are_described(desk: Desk) -> None:
    for path, method, route in desk.contract.routes():
        described = [parameter["name"] for parameter in route["parameters"] if parameter["in"] == "query"]
        if method not in READERS:
            assert described == []
            continue
        answer = await ask(desk, method, url_of(path) + "?nope=1")
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (400, "invalid-parameter"), path
        known = problem["detail"].rpartition(": ")[2].rstrip(".")
        assert set(known.split(", ")) == set(described or ["none"]), path


async def test_each_route_knows_the_members_that_are_described(desk: Desk) -> None:
    count = 0
    for path, method, route in desk.contract.routes():
        members = desk.contract.body_members(route)
        if members is None:
            continue
        wrong: dict[str, object] = {**{name: {} for name in members}, "nope": 1}
        answer = await ask(desk, method, url_of(path), wrong)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "invalid-request"), path
        faults = {error["pointer"]: error["detail"] for error in problem["errors"]}
        assert set(faults) == {f"/{name}" for name in wrong}, path
        unknown = {pointer for pointer, detail in faults.items() if detail == faults["/nope"]}
        assert unknown == {"/nope"}, path
        count += 1
    assert count > 10


async def test_each_text_that_explains_is_there(desk: Desk) -> None:
    document = desk.contract.document
    for _, _, route in desk.contract.routes():
        assert all(parameter["description"] for parameter in route["parameters"])
        assert all(answer.get("description") or "$ref" in answer for answer in route["responses"].values())
    assert all(tag["description"] for tag in document["tags"])
    assert all(
        parameter["description"] for item in document["paths"].values() for parameter in item.get("parameters", ())
    )


async def test_every_code_of_operators_is_in_it(desk: Desk) -> None:
    named = {name.partition("-")[2] for name in desk.contract.document["components"]["responses"]}
    codes = {code for codes in named for code in codes.split("-or-")}
    assert {"conflict", "job-not-failed", "job-expired", "job-already-finished", "method-not-allowed"} <= codes
    assert codes <= PROBLEMS.keys()


def test_a_field_that_is_not_described_is_a_fault() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answers = {"200": {"headers": {}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}
    document = {
        "paths": {"/admin/a": {"get": {"parameters": [], "responses": answers}}},
        "components": {"schemas": {"A": schema}},
    }
    contract, request = AdminContract(document), httpx.Request("GET", "http://testserver/admin/a")
    contract.check(httpx.Response(200, json={"a": "x"}, request=request), None)
    for fields in ({"a": "x", "b": 1}, {"a": 1}):
        with pytest.raises(AssertionError):
            contract.check(httpx.Response(200, json=fields, request=request), None)
    with pytest.raises(AssertionError):
        contract.check(httpx.Response(201, json={"a": "x"}, request=request), None)
