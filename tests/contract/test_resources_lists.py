"""Resources: the tenant's lists, page by page."""

from collections.abc import Iterator

import pytest

from harness.http import Client, JsonObject, problem
from harness.server import Server

PAGES_MAX = 20


@pytest.fixture(scope="module")
def list_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose lists nobody else adds to."""
    own = Server(tmp_path_factory.mktemp("lists"))
    try:
        yield own.start()
        own.stop()
    finally:
        own.kill()


@pytest.fixture(scope="module")
def lister(list_server: Server) -> Iterator[Client]:
    made = Client(list_server.url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def jobs(lister: Client) -> list[JsonObject]:
    """Seven finished jobs, newest first: four tasks succeeded, two failed, one of another operation."""
    made = [lister.submit("tasks", {}) for _ in range(4)]
    made += [lister.submit("tasks", {"plan": ["fail:invalid_input"]}) for _ in range(2)]
    made.append(lister.submit("anything", {}))
    return [lister.final(job) for job in reversed(made)]


def pages(client: Client, path: str, **parameters: str) -> list[JsonObject]:
    """Every page of a list, by its cursors."""
    found: list[JsonObject] = []
    cursor: str | None = None
    while len(found) < PAGES_MAX:
        query = parameters if cursor is None else {**parameters, "cursor": cursor}
        answer = client.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert set(page) == {"jobs", "next_cursor"}
        assert ("next" in answer.links) == (page["next_cursor"] is not None)
        found.append(page)
        cursor = page["next_cursor"]
        if cursor is None:
            return found
    raise AssertionError("the list never ends")


def ids(jobs: list[JsonObject]) -> list[str]:
    return [job["id"] for job in jobs]


def test_lists_are_newest_first_and_hold_the_jobs_as_get_shows_them(lister: Client, jobs: list[JsonObject]) -> None:
    [everything] = pages(lister, "/v1/jobs")
    assert ids(everything["jobs"]) == ids(jobs)
    [tasks] = pages(lister, "/v1/tasks")
    assert ids(tasks["jobs"]) == ids(jobs)[1:]
    for listed, job in zip(everything["jobs"], jobs, strict=True):
        shown = {name: value for name, value in job.items() if name != "result"}
        assert {name: value for name, value in listed.items() if name != "result"} == shown


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 200])
def test_bb112_pages_end_with_null(lister: Client, jobs: list[JsonObject], limit: int) -> None:
    found = pages(lister, "/v1/tasks", limit=str(limit))
    assert [job_id for page in found for job_id in ids(page["jobs"])] == ids(jobs)[1:]
    assert len(found) == -(-6 // limit), "no cursor leads to nothing"
    assert all(len(page["jobs"]) == limit for page in found[:-1])


def test_bb112_an_empty_list_is_one_page(lister: Client) -> None:
    assert lister.get("/v1/keyed").json() == {"jobs": [], "next_cursor": None}
    assert lister.get("/v1/jobs?status=cancelled").json() == {"jobs": [], "next_cursor": None}


def test_the_next_page_is_also_a_link(lister: Client, jobs: list[JsonObject]) -> None:
    first = lister.get("/v1/tasks?limit=3&status=succeeded")
    second = lister.http.get(first.links["next"]["url"])
    assert ids(first.json()["jobs"]) + ids(second.json()["jobs"]) == ids(jobs)[3:]
    assert second.json()["next_cursor"] is None


def test_lists_can_be_narrowed_to_a_status(lister: Client, jobs: list[JsonObject]) -> None:
    for status, expected in (("failed", ids(jobs)[1:3]), ("succeeded", [ids(jobs)[0], *ids(jobs)[3:]]), ("queued", [])):
        found = pages(lister, "/v1/jobs", status=status, limit="2")
        assert [job_id for page in found for job_id in ids(page["jobs"])] == expected


def test_pages_are_stable_under_inserts(client: Client) -> None:
    made = [client.submit("brief-result", {}) for _ in range(5)]
    first = client.get("/v1/brief-result?limit=2").json()
    late = client.submit("brief-result", {})
    rest = pages(client, "/v1/brief-result", limit="2", cursor=first["next_cursor"])
    seen = ids(first["jobs"]) + [job_id for page in rest for job_id in ids(page["jobs"])]
    assert late["id"] not in seen
    assert [job_id for job_id in seen if job_id in ids(made)] == ids(list(reversed(made)))


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=1e9",
        "limit=1e999",
        "limit=NaN",
        "limit=",
        "limit=ten",
        "limit[]=1",
        "limit=1000000000",
        "limit=1&limit=2",
        "status=done",
        "status=",
        "status=*",
        "status=queued&status=running",
        "limit=%31%00",
        "limit=\u0661",
        "offset=3",
    ],
)
def test_bb094_parameters_out_of_range_are_400(client: Client, query: str) -> None:
    problem(client.get(f"/v1/jobs?{query}"), 400, "invalid-parameter")


@pytest.mark.parametrize("cursor", ["x", "", "null", "' OR 1=1 --", "a" * 10_000, "%00", "AAAA", "job_1"])
def test_a_cursor_that_was_not_given_out_is_400(client: Client, cursor: str) -> None:
    answer = client.get(f"/v1/jobs?cursor={cursor}")
    problem(answer, 400, "invalid-cursor")


def test_a_cursor_belongs_to_its_own_list(lister: Client, jobs: list[JsonObject]) -> None:
    cursor = lister.get("/v1/tasks?limit=1").json()["next_cursor"]
    assert lister.get(f"/v1/tasks?limit=2&cursor={cursor}").status_code == 200, "pages may change their size"
    for path in ("/v1/keyed?", "/v1/jobs?", "/v1/tasks?status=failed&"):
        problem(lister.get(f"{path}limit=1&cursor={cursor}"), 400, "invalid-cursor")
