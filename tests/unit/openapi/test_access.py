"""What the document says of who may call what."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from coatcheck.http.openapi import build_openapi

from .bookshop import guarded_settings, make_app, make_settings
from .test_document import Document, route_named, routes

ALL_WAYS = ["apiKeyBearer", "apiKeyHeader", "token", "gateway"]


@pytest.fixture(scope="module")
def guarded() -> Document:
    return build_openapi(make_app(), guarded_settings())


def names_of(route: Document) -> list[str]:
    return [name for one in route.get("security", ()) for name in one]


def codes_of(document: Document, route: Document, status: str) -> list[str]:
    name = route["responses"][status]["$ref"].rpartition("/")[2]
    found: Any = document["components"]["responses"][name]["content"]["application/problem+json"]["schema"]
    codes: list[str] = found["allOf"][1]["properties"]["code"]["enum"]
    return codes


def test_it_is_valid_openapi(guarded: Document) -> None:
    OpenAPIV31SpecValidator(guarded).validate()


def test_without_authentication_nothing_is_said_of_it() -> None:
    for document in (build_openapi(make_app(), make_settings(auth=auth)) for auth in ("", "none")):
        assert "securitySchemes" not in document["components"]
        assert "WWW-Authenticate" not in document["components"]["headers"]
        assert [path for path, _, route in routes(document) if names_of(route) or "401" in route["responses"]] == []
        assert not any("view-" in path for path in document["paths"])


def test_every_route_but_the_open_ones_names_its_schemes_and_refusals(guarded: Document) -> None:
    is_open = [path for path, _, route in routes(guarded) if not names_of(route)]
    assert is_open == ["/livez", "/readyz", "/openapi.json", "/docs", "/problems", "/problems/{code}"]
    for path, _, route in routes(guarded):
        assert ({"401", "403"} <= route["responses"].keys()) is (path not in is_open), path
        assert set(names_of(route)) <= set(guarded["components"]["securitySchemes"])


@pytest.mark.parametrize(
    ("operation_id", "ways"),
    [
        ("submit_reports", ALL_WAYS),
        ("get_reports", [*ALL_WAYS, "viewToken", "viewSession"]),
        ("result_of_reports", [*ALL_WAYS, "viewToken", "viewSession"]),
        ("attempts_of_reports", [*ALL_WAYS, "viewToken", "viewSession"]),
        ("cancel_reports", ALL_WAYS),
        ("erase_reports", ALL_WAYS),
        ("view_token_of_reports", ALL_WAYS),
        ("view_session_of_reports", ["viewToken"]),
        ("all_jobs", ALL_WAYS),
        ("metrics", ["operator"]),
    ],
)
def test_ways_in(guarded: Document, operation_id: str, ways: list[str]) -> None:
    assert names_of(route_named(guarded, operation_id)) == ways


def test_only_submissions_are_refused_to_suspended_tenants(guarded: Document) -> None:
    assert codes_of(guarded, route_named(guarded, "submit_reports"), "403") == ["forbidden", "tenant-suspended"]
    assert codes_of(guarded, route_named(guarded, "get_reports"), "403") == ["forbidden"]


def test_the_identity_provider_is_named_only_where_there_is_one(guarded: Document) -> None:
    assert "identity-provider-unavailable" in codes_of(guarded, route_named(guarded, "get_reports"), "503")
    document = build_openapi(make_app(), make_settings(auth="keys"))
    assert "identity-provider-unavailable" not in codes_of(document, route_named(document, "get_reports"), "503")


def test_metrics_may_be_opened() -> None:
    document = build_openapi(make_app(), make_settings(auth="keys", metrics_open=True))
    assert names_of(route_named(document, "metrics")) == []
