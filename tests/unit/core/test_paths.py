"""Where operations may live."""

import pytest

from coatcheck.core.paths import path_fault


@pytest.mark.parametrize("path", ["/reports", "/v1/report-jobs", "/v1/a/b/c", "/A.b~c_d-e", "/1", "/v1", "/v1/jobs2"])
def test_these_are_free(path: str) -> None:
    if path == "/v1":
        assert path_fault(path, []) is not None
    else:
        assert path_fault(path, []) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "reports",
        "/reports/",
        "//reports",
        "/a//b",
        "/a b",
        "/a/{id}",
        "/a?b",
        "/a#b",
        "/ä",
        "/.",
        "/..",
        "/a/..",
        "/-a",
        "/a%20b",
        "/a\n",
        "/a:b",
        "/*",
    ],
)
def test_these_are_not_paths(path: str) -> None:
    fault = path_fault(path, [])
    assert fault is not None
    assert "must be absolute" in fault


@pytest.mark.parametrize(
    "path",
    [
        "/livez",
        "/readyz",
        "/metrics",
        "/docs",
        "/docs/x",
        "/problems",
        "/problems/a",
        "/openapi.json",
        "/admin",
        "/admin/a",
        "/console",
        "/v1/jobs",
        "/v1/jobs/a",
        "/v1/uploads",
        "/v1/webhook-endpoints",
        "/v1/events",
        "/v1",
    ],
)
def test_these_are_the_service_s_own(path: str) -> None:
    fault = path_fault(path, [])
    assert fault is not None
    assert "reserved" in fault


@pytest.mark.parametrize(("path", "taken"), [("/a", "/a"), ("/a/b", "/a"), ("/a", "/a/b"), ("/a/b/c", "/a")])
def test_operations_may_not_overlap(path: str, taken: str) -> None:
    fault = path_fault(path, ["/other", taken])
    assert fault is not None
    assert repr(taken) in fault


@pytest.mark.parametrize(("path", "taken"), [("/a", "/ab"), ("/ab", "/a"), ("/a/b", "/a/c"), ("/a-b", "/a")])
def test_neighbours_do_not_overlap(path: str, taken: str) -> None:
    assert path_fault(path, [taken]) is None
