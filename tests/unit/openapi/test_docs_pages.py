"""The pages: escaped, self-contained, cacheable, and the same below a mount point."""

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from coatcheck.core.faults import no_fault
from coatcheck.core.problems import PROBLEMS
from coatcheck.http.app import build_asgi
from coatcheck.http.draining import DrainState
from coatcheck.http.negotiation import prefers_json
from coatcheck.http.services import HttpServices
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings

from .bookshop import HOSTILE, OF_OPERATORS, guarded_settings, make_app, make_settings

PAGES = [
    "/docs",
    "/docs/service",
    "/docs/operations/reports",
    "/docs/operations/order-imports",
    "/docs/operations/covers",
    "/docs/operations/hostile",
    "/problems",
    *(f"/problems/{code}" for code in PROBLEMS),
]


UNUSUAL = ("method-not-allowed", "unauthenticated", "forbidden", "identity-provider-unavailable", *OF_OPERATORS)
"""Codes that no route of a service without authentication owns."""


def client(settings: Settings | None = None, mount: str = "") -> httpx.AsyncClient:
    services = SimpleNamespace(
        app=make_app(),
        settings=settings or make_settings(),
        metrics=Metrics(),
        draining=DrainState(),
        rates=None,
        watch=SimpleNamespace(stop=lambda: None),
        store=SimpleNamespace(clock=None),
        fault_point=no_fault,
        authentication=SimpleNamespace(),
        views=None,
    )
    asgi = build_asgi(cast("HttpServices", services))
    app = Starlette(routes=[Mount(mount, asgi)]) if mount else asgi
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://untrusted.example")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client() as opened:
        yield opened


class Page(HTMLParser):
    """What a browser would act on, and whether every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in {"br", "img", "link", "meta"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.attributes if key == name]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_whole_and_runs_nothing(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    page = Page(answer.text)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert not {"script", "style", "iframe", "object", "form", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name == "style" or name.startswith("on")]
    assert re.search(r"<title>[^<]+ · bookshop</title>", answer.text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_forbids_what_it_does_not_need(http: httpx.AsyncClient, path: str) -> None:
    headers = (await http.get(path)).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'")
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers.get_list("x-content-type-options") == ["nosniff"]
    assert headers["x-correlation-id"]


@pytest.mark.parametrize("mount", ["", "/mounted/here"])
async def test_every_link_leads_to_a_page_below_the_mount_point(mount: str) -> None:
    async with client(mount=mount) as http:
        targets = set()
        for path in PAGES:
            page = Page((await http.get(mount + path)).text)
            own = [f"{mount}{path}{link}" if link.startswith("#") else link for link in page.values("href")]
            targets |= {*own, *page.values("src")}
        assert all(target.startswith(f"{mount}/") for target in targets)
        for target in targets:
            url, _, anchor = target.partition("#")
            answer = await http.get(url)
            assert answer.status_code == 200, target
            assert not anchor or anchor in Page(answer.text).values("id"), target


async def test_links_carry_the_path_of_the_public_url() -> None:
    async with client(make_settings(public_url="https://jobs.example.org/api")) as http:
        text = (await http.get("/docs/operations/reports")).text
    assert all(link.startswith(("/api/", "#")) for link in Page(text).values("href"))
    assert "curl -i -X POST https://jobs.example.org/api/reports" in text


@pytest.mark.parametrize("path", ["/docs", "/docs/operations/hostile", "/problems/not-found"])
async def test_a_hostile_docstring_stays_text(http: httpx.AsyncClient, path: str) -> None:
    text = (await http.get(path)).text
    assert not re.search(r"<(script|b|i)>|<img src=x|onerror=alert\(1\)>(?!&)", text)
    if path == "/docs/operations/hostile":
        shown = unescape(re.sub(r"<[^>]+>", "", text))
        assert "<script>alert('x')</script>" in shown
        assert "<img src=x onerror=alert(1)>" in shown
        assert HOSTILE.partition("\n")[0].replace("`", "") in shown


async def test_a_host_nobody_vouches_for_is_not_repeated(http: httpx.AsyncClient) -> None:
    for path in ("/docs/operations/reports", "/openapi.json", "/problems/not-found"):
        assert "untrusted.example" not in (await http.get(path)).text


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/service", "/problems", "/problems/not-found"])
async def test_what_the_client_holds_is_not_sent_again(http: httpx.AsyncClient, path: str) -> None:
    first = await http.get(path)
    assert first.headers["cache-control"] == "no-cache"
    again = await http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    weak = await http.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert weak.status_code == 304
    assert (await http.get(path, headers={"If-None-Match": '"other"'})).status_code == 200


async def test_static_files_are_kept_and_named_after_their_content(http: httpx.AsyncClient) -> None:
    page = Page((await http.get("/docs")).text)
    static = {url for url in [*page.values("href"), *page.values("src")] if "/static/" in url}
    assert len(static) == 2
    for url in static:
        answer = await http.get(url)
        assert re.search(r"-[0-9a-f]{12}\.(css|svg)$", url)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] in {"text/css; charset=utf-8", "image/svg+xml"}
        assert (await http.get(url, headers={"If-None-Match": answer.headers["etag"]})).status_code == 304
        assert "http" not in re.sub(r'xmlns="[^"]+"', "", answer.text)


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/problems", "/problems/not-found"])
async def test_head_has_the_headers_of_get(http: httpx.AsyncClient, path: str) -> None:
    got, head = await http.get(path), await http.head(path)
    assert head.content == b""
    varying = {"x-correlation-id"}
    assert {k: v for k, v in head.headers.items() if k not in varying} == {
        k: v for k, v in got.headers.items() if k not in varying
    }


@pytest.mark.parametrize("path", ["/problems/unheard-of", "/docs/operations/none", "/docs/static/none.css", "/docs/x"])
async def test_what_is_not_there_is_a_problem(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not-found"


async def test_other_methods_are_a_problem(http: httpx.AsyncClient) -> None:
    answer = await http.post("/docs")
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


async def test_a_problem_is_data_where_json_is_asked_for(http: httpx.AsyncClient) -> None:
    answer = await http.get("/problems/job-expired", headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Accept"
    kind = PROBLEMS["job-expired"]
    assert answer.json() == {
        "code": "job-expired",
        "type": "/problems/job-expired",
        "title": kind.title,
        "statuses": [410, 409],
        "meaning": kind.meaning,
        "remedy": kind.remedy,
    }
    index = await http.get("/problems", headers={"Accept": "application/json"})
    assert [one["code"] for one in index.json()["problems"]] == list(PROBLEMS)


async def test_a_problem_page_says_what_it_means_what_to_do_and_where_it_comes(http: httpx.AsyncClient) -> None:
    for code, kind in PROBLEMS.items():
        text = unescape(re.sub(r"<[^>]+>", "", (await http.get(f"/problems/{code}")).text))
        assert kind.title in text
        assert kind.meaning.replace("`", "") in text
        assert kind.remedy.replace("`", "") in text
        assert f'"code": "{code}"' in text
        assert ("Where it comes" in text) == (code not in UNUSUAL)


@pytest.mark.parametrize(
    ("accept", "is_json"),
    [
        ("application/json", True),
        ("application/json, text/plain", True),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("*/*", False),
        ("", False),
        ("text/html;q=0.5, application/json;q=0.9", True),
        ("text/html, application/json;q=0.9", False),
        ("application/json, text/html", True),
        ("text/html, application/json", False),
        ("application/json;q=0", False),
        ("application/json;q=nonsense", False),
        (",;=,q", False),
    ],
)
def test_json_is_asked_for_by_name_and_weight(accept: str, is_json: bool) -> None:
    assert prefers_json([accept.encode()]) is is_json
    assert prefers_json([part.encode() for part in accept.split(",")]) is is_json


async def test_with_authentication_the_pages_stay_open_and_commands_show_a_credential() -> None:
    settings = guarded_settings()
    async with client(settings) as http:
        page = unescape(re.sub(r"<[^>]+>", "", (await http.get("/docs/operations/reports")).text))
    assert page.count("Authorization: Bearer …") == page.count("curl -") > 0
    assert "/view-token" in page
    async with client() as http:
        assert "Authorization" not in (await http.get("/docs/operations/reports")).text
