"""What a process without the API serves: whether it lives, whether it is ready, and its metrics."""

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from coatcheck.admission.identity import Unauthenticated
from coatcheck.core import limits
from coatcheck.http.draining import DrainState
from coatcheck.http.identity import read_token
from coatcheck.http.shared_secrets import are_metrics_open, metrics_secrets
from coatcheck.observe.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store.contract import ReadingStore
from coatcheck.store.errors import StoreUnavailable


def build_probes(store: ReadingStore, metrics: Metrics, draining: DrainState, settings: Settings) -> ASGIApp:
    """The app behind `metrics_port`."""
    is_open, secrets = are_metrics_open(settings), metrics_secrets(settings)

    async def livez(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        if draining.has_begun:
            return PlainTextResponse("draining\n", 503)
        try:
            async with asyncio.timeout(limits.READY_CHECK_S_MAX):
                await store.check_health()
        except (StoreUnavailable, TimeoutError):
            return PlainTextResponse("store unavailable\n", 503)
        return PlainTextResponse("ready\n")

    async def scrape(request: Request) -> Response:
        if not (is_open or secrets.have(_token(request))):
            return PlainTextResponse("unauthenticated\n", 401, {"WWW-Authenticate": 'Bearer realm="coatcheck"'})
        body, content_type = metrics.render()
        return Response(body, media_type=content_type)

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", scrape)])


def _token(request: Request) -> bytes:
    names = (b"authorization", b"apikey")
    headers = {name: [value for one, value in request.headers.raw if one == name] for name in names}
    try:
        return read_token({name: values for name, values in headers.items() if values}) or b""
    except Unauthenticated:
        return b""
