"""/admin/limits: what is allowed, where that comes from, and how it is changed at run time.

A limit is named by its path and by two parameters. `tenant`: a tenant's name, `*` for each tenant by itself, or
nothing for all of them together. `operation`: an operation's name, or nothing for all of them together.
"""

from typing import Annotated

from pydantic import Field

from coatcheck.core.quotas import ALL, LimitKey
from coatcheck.http.admin_answers import answer_fields, limit_fields, page_fields
from coatcheck.http.admin_requests import Wish, actor_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.limits import Limits


class LimitWish(Wish):
    """What a limit is to be."""

    value: Annotated[float | None, Field(description="0: none allowed; null: unlimited.")]


class LimitRoutes:
    """Answers with limits as they hold, in numbers and in words."""

    def __init__(self, services: HttpServices, limits: Limits) -> None:
        self._services = services
        self._limits = limits

    async def list(self, exchange: Exchange) -> None:
        parameters = read_query(exchange, "tenant", "operation")
        found = await self._limits.list(parameters.get("tenant"), parameters.get("operation"))
        await answer_fields(exchange, page_fields("limits", [limit_fields(limit) for limit in found], None))

    async def show(self, exchange: Exchange) -> None:
        await answer_fields(exchange, limit_fields(await self._limits.find(_key(exchange))))

    async def set(self, exchange: Exchange) -> None:
        key = _key(exchange)
        wish = await read_wish(self._services, exchange, LimitWish)
        await answer_fields(exchange, limit_fields(await self._limits.set(key, wish.value, actor_of(exchange))))

    async def clear(self, exchange: Exchange) -> None:
        limit = await self._limits.clear(_key(exchange), actor_of(exchange))
        await answer_fields(exchange, limit_fields(limit))


def _key(exchange: Exchange) -> LimitKey:
    parameters = read_query(exchange, "tenant", "operation")
    return exchange.item, parameters.get("tenant", ALL), parameters.get("operation", ALL)
