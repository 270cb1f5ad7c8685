"""What a process without the API serves: whether it lives, whether it is ready, and its metrics."""

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from coatcheck.core import limits
from coatcheck.http.draining import DrainState
from coatcheck.observe.metrics import Metrics
from coatcheck.store.contract import ReadingStore
from coatcheck.store.errors import StoreUnavailable


def build_probes(store: ReadingStore, metrics: Metrics, draining: DrainState) -> ASGIApp:
    """The app behind `metrics_port`."""

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
        body, content_type = metrics.render()
        return Response(body, media_type=content_type)

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", scrape)])
