"""/admin/tenants/{tenant}/revoke, /restore and /work: the end of a tenant, and how far it is."""

from typing import Annotated

from pydantic import Field

from coatcheck.core.problems import FieldError
from coatcheck.core.tenancy import Revocation
from coatcheck.http.admin_answers import answer_fields, tenant_fields
from coatcheck.http.admin_requests import Wish, actor_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.faults import invalid
from coatcheck.operators.revocations import Revocations
from coatcheck.operators.tenants import Tenants


class RevokeWish(Wish):
    """What is to become of the tenant's jobs."""

    policy: Annotated[
        str | None, Field(description="finish, quarantine, cancel or erase; what is declared, if left out.")
    ] = None


class RevocationRoutes:
    """Answers with the tenant as it is afterwards."""

    def __init__(self, services: HttpServices, tenants: Tenants, revocations: Revocations) -> None:
        self._services = services
        self._tenants = tenants
        self._revocations = revocations

    async def revoke(self, exchange: Exchange) -> None:
        wish = await read_wish(self._services, exchange, RevokeWish)
        policy = _policy(wish.policy)
        tenant = await self._revocations.revoke(exchange.item, policy, actor_of(exchange))
        await answer_fields(exchange, tenant_fields(tenant))

    async def restore(self, exchange: Exchange) -> None:
        await read_wish(self._services, exchange, Wish)
        tenant = await self._revocations.restore(exchange.item, actor_of(exchange))
        await answer_fields(exchange, tenant_fields(tenant))

    async def show_work(self, exchange: Exchange) -> None:
        read_query(exchange)
        tenant = await self._tenants.find(exchange.item)
        work = await self._revocations.measure(tenant.name)
        counts = {"queued": work.queued, "running": work.running, "finished": work.finished}
        await answer_fields(exchange, {"tenant": tenant.name, **counts})


def _policy(text: str | None) -> Revocation | None:
    try:
        return None if text is None else Revocation(text)
    except ValueError:
        raise invalid(FieldError("/policy", f"This must be one of {', '.join(Revocation)}.")) from None
