"""The edge as an ASGI app: every request gets an answer with a correlation id, whatever happens behind it."""

import contextlib
from collections.abc import MutableMapping
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Scope, Send

from coatcheck.admission.correlation import correlation_id_of
from coatcheck.completion.representation import UrlBook
from coatcheck.core.problems import Refused
from coatcheck.http.dispatch import Resources, answer_with
from coatcheck.http.documents import Documents
from coatcheck.http.doorkeeper import Doorkeeper
from coatcheck.http.exchange import ClientGone, Exchange
from coatcheck.http.problem_answers import answer_problem
from coatcheck.http.refusals import internal_error, saturated, store_unavailable
from coatcheck.http.room import Room
from coatcheck.http.services import HttpServices
from coatcheck.observe.logs import get_logger
from coatcheck.observe.metrics import Counter
from coatcheck.store.errors import StoreUnavailable

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_HEADER_OVERHEAD_BYTES: Final = 4
_PATH_SAFE = "/-._~!$&'()*+,;=:@"

_log = get_logger("http")


def build_asgi(services: HttpServices) -> ASGIApp:
    """The whole HTTP interface, for a server of its own or to be mounted below another app."""
    return HttpEdge(services)


class HttpEdge:
    """Routes requests and turns whatever is raised into the one answer each of them gets."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services
        self._resources = Resources(services)
        self._documents = Documents(services)
        self._doorkeeper = Doorkeeper(services)
        self._paths = {operation.name: operation.path for operation in services.app.operations.values()}
        self._answered = cache(self._counter)
        self._urls = lru_cache(maxsize=64)(self._urls_below)
        policies = [operation.policy for operation in services.app.operations.values()]
        self._answers_room = Room(policy.result_bytes_max for policy in policies)
        services.draining.on_begin(services.watch.stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(self._exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    def _exchange(self, scope: Scope, receive: Receive, send: Send) -> Exchange:
        headers: dict[bytes, tuple[bytes, ...]] = {}
        for name, value in scope["headers"]:
            headers[name] = (*headers[name], value) if name in headers else (value,)
        exchange = Exchange(scope, receive, send, headers)
        exchange.correlation_id = correlation_id_of(headers.get(b"x-correlation-id", ()))
        exchange.urls = self._urls(scope.get("root_path", ""))
        exchange.fault_point = self._services.fault_point
        exchange.answers_room = self._answers_room
        exchange.gatekeeper = self._doorkeeper
        return exchange

    async def _serve(self, exchange: Exchange) -> None:
        try:
            if exchange.direct is None:
                # Our own server has measured the headers while they came.
                self._check_head(exchange)
            found = self._resources.find(route_path(exchange.scope))
            if found is None:
                await self._documents.serve(exchange)
            else:
                await answer_with(*found, exchange, self._doorkeeper)
        except ClientGone:
            return
        except Exception as error:
            await self._answer_failure(exchange, error)
        finally:
            if exchange.status:
                self._count(exchange)

    def _count(self, exchange: Exchange) -> None:
        method = exchange.method if exchange.method in _METHODS else "other"
        self._answered(exchange.route, method, exchange.status).add()

    def _counter(self, route: str, method: str, status: int) -> Counter:
        return self._services.metrics.counter("http_requests", route=route, method=method, status=str(status))

    async def _answer_failure(self, exchange: Exchange, error: Exception) -> None:
        if isinstance(error, Refused):
            refused = error
        elif isinstance(error, StoreUnavailable):
            _log.warning("store_unavailable", reason=str(error), correlation_id=exchange.correlation_id)
            refused = store_unavailable()
        elif isinstance(error, MemoryError):
            _log.warning("out_of_memory", route=exchange.route, correlation_id=exchange.correlation_id)
            refused = saturated("This server has no memory left for such a request now.")
        else:
            _log.error("request_failed", route=exchange.route, correlation_id=exchange.correlation_id, exc_info=error)
            refused = internal_error()
        # An answer that has begun cannot become another: left unfinished, it ends with its connection.
        if not exchange.status:
            with contextlib.suppress(ClientGone):
                await answer_problem(exchange, refused)

    def _check_head(self, exchange: Exchange) -> None:
        bytes_max, headers = self._services.settings.headers_bytes_max, exchange.scope["headers"]
        if sum(len(name) + len(value) + _HEADER_OVERHEAD_BYTES for name, value in headers) > bytes_max:
            raise Refused("headers-too-large", f"The request headers have more than {bytes_max} bytes together.")

    def _urls_below(self, root_path: str) -> UrlBook:
        prefix = self._services.settings.public_url or quote(root_path.rstrip("/"), safe=_PATH_SAFE)
        return UrlBook(prefix, self._paths)


def route_path(scope: MutableMapping[str, Any]) -> str:
    """The path below the mount point."""
    path: str = scope["path"]
    root_path: str = scope.get("root_path", "")
    if not root_path:
        return path
    root_path = root_path.rstrip("/")
    if root_path and path.startswith(root_path) and path[len(root_path) : len(root_path) + 1] in ("", "/"):
        return path[len(root_path) :]
    return path


async def _live(receive: Receive, send: Send) -> None:
    """Agree to the server's start and end: nothing here begins or ends with it."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
