"""The routes of /openapi.json, /docs and /problems: pages made from the document, with nothing from other hosts.

Pages hold no scripts and no inline styles, and their content security policy says so.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from coatcheck.app import App
from coatcheck.core.problems import PROBLEMS, Refused
from coatcheck.http.conditional import read_condition
from coatcheck.http.docs_problems import problem_data
from coatcheck.http.docs_site import Site, Sites
from coatcheck.http.negotiation import prefers_json
from coatcheck.settings import Settings

PAGE_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_PAGE_HEADERS: Final = {
    "Content-Security-Policy": PAGE_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# The name of a static file carries the digest of its content, so that it never changes.
_UNCHANGING: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_ASK_AGAIN: Final = {"Cache-Control": "no-cache"}
_STATIC: Final = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


def docs_routes(app: App, settings: Settings) -> Sequence[BaseRoute]:
    """All routes of the documentation. Operations declared later than this call are not in it.

    Unknown operations and problem codes raise Refused("not-found").
    """
    files_by_name = {_hashed(name): (_STATIC[name], _read_static(name)) for name in _STATIC}
    pages = _Pages(Sites(app, settings, styles=_hashed("style.css"), icon=_hashed("icon.svg")), files_by_name)
    return [
        Route("/openapi.json", pages.openapi),
        Route("/docs", pages.overview),
        Route("/docs/service", pages.service),
        Route("/docs/operations/{name}", pages.operation),
        Route("/docs/static/{file}", pages.static),
        Route("/problems", pages.problems),
        Route("/problems/{code}", pages.problem),
    ]


class _Pages:
    """The endpoints."""

    def __init__(self, sites: Sites, files_by_name: dict[str, tuple[str, bytes]]) -> None:
        self._sites = sites
        self._files = files_by_name

    def _site(self, request: Request) -> Site:
        return self._sites.below(request.scope.get("root_path", ""))

    async def openapi(self, request: Request) -> Response:
        return _answer(request, self._site(request).document_json, _JSON, _ASK_AGAIN)

    async def overview(self, request: Request) -> Response:
        return _page(request, self._site(request).overview())

    async def service(self, request: Request) -> Response:
        return _page(request, self._site(request).service())

    async def operation(self, request: Request) -> Response:
        page = self._site(request).operation(request.path_params["name"])
        if page is None:
            raise Refused("not-found", "No operation has this name.")
        return _page(request, page)

    async def static(self, request: Request) -> Response:
        if request.path_params["file"] not in self._files:
            raise Refused("not-found", "There is nothing at this URL.")
        media_type, content = self._files[request.path_params["file"]]
        return _answer(request, content, media_type, _UNCHANGING)

    async def problems(self, request: Request) -> Response:
        site = self._site(request)
        if prefers_json(_values(request, b"accept")):
            listed = {"problems": [problem_data(kind, site.base_url) for kind in PROBLEMS.values()]}
            return _data(request, listed)
        return _page(request, site.problems(), {"Vary": "Accept"})

    async def problem(self, request: Request) -> Response:
        kind = PROBLEMS.get(request.path_params["code"])
        if kind is None:
            raise Refused("not-found", "No problem has this code.")
        site = self._site(request)
        if prefers_json(_values(request, b"accept")):
            return _data(request, problem_data(kind, site.base_url))
        return _page(request, site.problem(kind), {"Vary": "Accept"})


def _page(request: Request, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return _answer(request, body, _HTML, {**_ASK_AGAIN, **_PAGE_HEADERS, **(headers or {})})


def _data(request: Request, value: object) -> Response:
    return _answer(request, json.dumps(value, ensure_ascii=False).encode(), _JSON, {**_ASK_AGAIN, "Vary": "Accept"})


def _answer(request: Request, body: bytes, media_type: str, headers: dict[str, str]) -> Response:
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    sent = {**headers, "ETag": etag}
    if read_condition(_values(request, b"if-none-match")).matches(etag):
        return Response(status_code=304, headers=sent)
    return Response(body, headers=sent, media_type=media_type)


def _values(request: Request, header: bytes) -> Sequence[bytes]:
    return [value for name, value in request.headers.raw if name == header]


def _read_static(name: str) -> bytes:
    return files("coatcheck.http").joinpath("static", name).read_bytes()


def _hashed(name: str) -> str:
    stem, _, suffix = name.partition(".")
    return f"{stem}-{sha256(_read_static(name)).hexdigest()[:12]}.{suffix}"
