"""/admin/tenants/{name}/spending: what a tenant's jobs cost."""

from coatcheck.http.admin_answers import answer_fields, page_fields, spending_fields
from coatcheck.http.admin_requests import cursor_of, page_of, read_query
from coatcheck.http.exchange import Exchange
from coatcheck.operators.spending import Spendings, place_of


class SpendingRoutes:
    """Answers with windows, the newest first."""

    def __init__(self, spendings: Spendings) -> None:
        self._spendings = spendings

    async def list(self, exchange: Exchange) -> None:
        size, place = page_of(read_query(exchange, "limit", "cursor"))
        found = await self._spendings.list(exchange.item, size + 1, place)
        page = found[:size]
        cursor = cursor_of(place_of(page[-1])) if len(found) > size else None
        await answer_fields(exchange, page_fields("spending", [spending_fields(row) for row in page], cursor))
