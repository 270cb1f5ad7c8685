"""/admin/openapi.json: this API as a document, for operators alone."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from pydantic_core import to_json

from coatcheck.http.admin_requests import read_query
from coatcheck.http.admin_table import AdminCollection
from coatcheck.http.exchange import Exchange
from coatcheck.http.openapi_admin import build_admin_openapi
from coatcheck.http.services import HttpServices

_DOCUMENTS_MAX = 8


class DocumentRoutes:
    """Answers with the document of the whole table, made when it is first asked for."""

    def __init__(self, services: HttpServices, collections: Callable[[], Sequence[AdminCollection]]) -> None:
        self._services = services
        self._collections = collections
        self._below = lru_cache(_DOCUMENTS_MAX)(self._build)

    async def show(self, exchange: Exchange) -> None:
        read_query(exchange)
        await exchange.answer_json(200, self._below(exchange.urls.prefix), [(b"cache-control", b"no-store")])

    def _build(self, base_url: str) -> bytes:
        services = self._services
        document = build_admin_openapi(self._collections(), services.app.name, services.settings, base_url)
        return to_json(document, inf_nan_mode="null", fallback=str)
