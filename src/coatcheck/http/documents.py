"""The documentation's routes, served by Starlette under the same rules as all others."""

from starlette.exceptions import HTTPException
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from coatcheck.core.problems import Refused
from coatcheck.http.docs_pages import docs_routes
from coatcheck.http.exchange import Exchange
from coatcheck.http.refusals import method_not_allowed, not_found
from coatcheck.http.services import HttpServices


class Documents:
    """Everything that no resource of jobs or health answers; what it does not know either is not found."""

    def __init__(self, services: HttpServices) -> None:
        routes = docs_routes(services.app, services.settings)
        # A redirect to the path without its last slash would repeat the client's Host.
        self._router = Router(routes, redirect_slashes=False, default=_refuse)

    async def serve(self, exchange: Exchange) -> None:
        """Answer, with the headers of every answer added.

        Raises:
            Refused: `not-found` or `method-not-allowed`.
        """

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                segments = exchange.scope["path"].removeprefix(exchange.scope.get("root_path", "")).split("/")
                exchange.route = "/" + "".join(segments[1:2])
                headers = [(b"x-content-type-options", b"nosniff"), *message["headers"]]
                await exchange.begin(message["status"], headers)
            else:
                await exchange.send({**message, "body": b""} if exchange.is_head else message)

        # Starlette raises instead of answering where a scope names its app.
        scope: Scope = {**exchange.scope, "app": self}
        try:
            await self._router(scope, exchange.receive, send)
        except HTTPException as error:
            raise _refused(error) from None


def _refused(error: HTTPException) -> Refused:
    if error.status_code == 405:
        return method_not_allowed((error.headers or {}).get("Allow", "GET, HEAD"))
    return not_found()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    raise not_found()
