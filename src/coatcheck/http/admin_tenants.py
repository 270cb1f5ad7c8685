"""/admin/tenants: accounts."""

from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from coatcheck.core import limits
from coatcheck.http.admin_answers import answer_fields, page_fields, tenant_fields
from coatcheck.http.admin_requests import Wish, actor_of, cursor_of, page_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.tenants import Tenants

Weight = Annotated[float, Field(description="Its share of the turns, beside tenants of weight 1.")]


class NewTenant(Wish):
    """A tenant to be made."""

    name: Annotated[str, Field(description=f"1 to {limits.TENANT_CHARS_MAX} characters.")]
    weight: Weight = 1.0


class TenantChange(Wish):
    """What is to be changed of a tenant; what is left out stays."""

    weight: Weight | None = None
    paused: Annotated[bool | None, Field(description="Whether its waiting jobs are held back.")] = None


class TenantRoutes:
    """Answers with the tenant as it is afterwards."""

    def __init__(self, services: HttpServices, tenants: Tenants) -> None:
        self._services = services
        self._tenants = tenants

    async def list(self, exchange: Exchange) -> None:
        size, after = page_of(read_query(exchange, "limit", "cursor"))
        found = await self._tenants.list(size + 1, after)
        page = found[:size]
        cursor = cursor_of(page[-1].name) if len(found) > size else None
        await answer_fields(exchange, page_fields("tenants", [tenant_fields(one) for one in page], cursor))

    async def add(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, NewTenant)
        tenant = await self._tenants.add(wish.name, wish.weight, actor_of(exchange))
        location = f"{exchange.urls.prefix}/admin/tenants/{quote(tenant.name, safe='')}"
        await answer_fields(exchange, tenant_fields(tenant), 201, location)

    async def show(self, exchange: Exchange) -> None:
        read_query(exchange)
        await answer_fields(exchange, tenant_fields(await self._tenants.find(exchange.item)))

    async def change(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, TenantChange)
        tenant = await self._tenants.set(exchange.item, actor_of(exchange), wish.weight, wish.paused)
        await answer_fields(exchange, tenant_fields(tenant))

    async def pause(self, exchange: Exchange) -> None:
        await self._set_paused(exchange, is_paused=True)

    async def resume(self, exchange: Exchange) -> None:
        await self._set_paused(exchange, is_paused=False)

    async def _set_paused(self, exchange: Exchange, is_paused: bool) -> None:
        await read_wish(self._services, exchange, Wish)
        tenant = await self._tenants.set(exchange.item, actor_of(exchange), is_paused=is_paused)
        await answer_fields(exchange, tenant_fields(tenant))
