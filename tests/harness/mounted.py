"""Apps of somebody else's with the service below them: one that forwards its lifespan, and one that does not."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from coatcheck import Service
from harness.apps import app

service = Service(app)


def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello from outside")


routes = [Route("/hello", hello), Mount("/shop/jobs", service.asgi())]
outer = Starlette(routes=routes, lifespan=service.lifespan)
lazy = Starlette(routes=routes)
