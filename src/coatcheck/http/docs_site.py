"""The pages of one service at one mount point, rendered once each from its OpenAPI document."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import to_json

from coatcheck.app import App
from coatcheck.core.problems import ProblemKind
from coatcheck.http.docs_layout import Frame, NavGroup, NavLink
from coatcheck.http.docs_markup import Child, Markup, element, inline, prose
from coatcheck.http.docs_problems import page_url, problem_index, problem_page, route_url
from coatcheck.http.docs_routes import METHODS, RouteView, badge
from coatcheck.http.docs_schemas import SchemaView
from coatcheck.http.docs_states import STATES
from coatcheck.http.openapi import base_url_of, build_openapi
from coatcheck.http.openapi_schemas import Schema
from coatcheck.http.openapi_service import SERVICE_TAG
from coatcheck.settings import Settings

_SITES_MAX: Final = 8
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not listened on


class Sites:
    """The sites of one app by mount point. `styles` and `icon` are names of static files."""

    def __init__(self, app: App, settings: Settings, styles: str, icon: str) -> None:
        self._app, self._settings = app, settings
        self._styles, self._icon = styles, icon
        self._sites: dict[str, Site] = {}

    def below(self, root_path: str) -> "Site":
        """The site mounted at this path."""
        if root_path not in self._sites:
            if len(self._sites) >= _SITES_MAX:
                self._sites.clear()
            self._sites[root_path] = Site(self._app, self._settings, root_path, (self._styles, self._icon))
        return self._sites[root_path]


class Site:
    """One mount point's document and pages. `base_url` begins the URLs a client is given."""

    def __init__(self, app: App, settings: Settings, root_path: str, static: tuple[str, str]) -> None:
        self.document = build_openapi(app, settings, root_path)
        self.base_url = base_url_of(settings, root_path)
        self._base = urlsplit(self.base_url).path
        self._app = app
        self._view = RouteView(
            self.document,
            SchemaView(self.document["components"]["schemas"]),
            SchemaView(self.document["components"]["schemas"], are_answers=True),
            self._base,
            self.base_url if settings.public_url else _local_origin(settings) + self._base,
        )
        self._static = static
        self._pages: dict[str, bytes] = {}

    @cached_property
    def document_json(self) -> bytes:
        """The document as UTF-8 JSON."""
        return to_json(self.document, inf_nan_mode="null", fallback=str)

    def overview(self) -> bytes:
        info = self.document["info"]
        content: Child = [
            element("h1", info["title"]),
            element("p", info["summary"], class_="lead"),
            element("h2", "Operations"),
            [self._card(tag) for tag in self.document["tags"] if tag["name"] != SERVICE_TAG]
            or element("p", "No operation is declared."),
            element("h2", "How it works"),
            STATES,
            element("div", prose(info["description"]), class_="intro"),
        ]
        return self._once(f"{self._base}/docs", "Overview", content)

    def operation(self, name: str) -> bytes | None:
        """The page of an operation; None where no operation has this name."""
        if name not in self._app.operations:
            return None
        tag = next(tag for tag in self.document["tags"] if tag["name"] == name)
        return self._tag_page(tag, name)

    def service(self) -> bytes:
        return self._tag_page(self.document["tags"][-1], "The service itself")

    def problems(self) -> bytes:
        return self._once(f"{self._base}/problems", "Problem codes", problem_index(self._base))

    def problem(self, kind: ProblemKind) -> bytes:
        here = f"{self._base}/problems/{kind.code}"
        return self._once(here, kind.title, problem_page(kind, self.document, self._base, self.base_url))

    def _tag_page(self, tag: Schema, title: str) -> bytes:
        content: Child = [
            element("h1", title),
            element("p", inline(tag["description"]), class_="lead") if tag["description"] != title else None,
            self._policy(tag.get("x-policy", {})),
            [self._view.section(path, method) for path, method, _ in self._routes(tag["name"])],
        ]
        return self._once(page_url(self._base, tag["name"]), title, content)

    def _once(self, here: str, title: str, content: Child) -> bytes:
        if here not in self._pages:
            self._pages[here] = self._frame.page(title, here, content)
        return self._pages[here]

    @cached_property
    def _frame(self) -> Frame:
        styles, icon = (f"{self._base}/docs/static/{name}" for name in self._static)
        home = f"{self._base}/docs"
        tags = [tag["name"] for tag in self.document["tags"] if tag["name"] != SERVICE_TAG]
        more = [
            NavLink("The service itself", page_url(self._base, SERVICE_TAG), self._places(SERVICE_TAG)),
            NavLink("Problem codes", f"{self._base}/problems"),
            NavLink("openapi.json", f"{self._base}/openapi.json"),
        ]
        navigation = [
            NavGroup("Start", [NavLink("Overview", home)]),
            NavGroup("Operations", [NavLink(tag, page_url(self._base, tag), self._places(tag)) for tag in tags]),
            NavGroup("Reference", more),
        ]
        return Frame(self._app.name, home, styles, icon, navigation)

    def _places(self, tag: str) -> list[tuple[str, str]]:
        return [(route["summary"], route["operationId"]) for _, _, route in self._routes(tag)]

    def _routes(self, tag: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for path, item in self.document["paths"].items():
            for method in item:
                if method in METHODS and item[method]["tags"] == [tag]:
                    yield path, method, item[method]

    def _card(self, tag: Schema) -> Markup:
        path, method, route = next(self._routes(tag["name"]))
        return element(
            "a",
            element("strong", tag["name"]),
            element("span", badge(method), element("code", path), class_="route"),
            element("span", inline(tag["description"]), class_="about") if tag["description"] != tag["name"] else None,
            href=route_url(self._base, dict(route)).partition("#")[0],
            class_="card",
        )

    def _policy(self, policy: Mapping[str, object]) -> Markup | None:
        if not policy:
            return None
        rows = [element("div", element("dt", name), element("dd", str(value))) for name, value in policy.items()]
        return element("dl", rows, class_="policy")


def _local_origin(settings: Settings) -> str:
    host = "127.0.0.1" if settings.host in _EVERY_ADDRESS else settings.host
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{settings.port or 8080}"
