"""/admin/operations: which take work, and which start it."""

from coatcheck.core.tenancy import OperationMode
from coatcheck.http.admin_answers import answer_fields, operation_fields, page_fields
from coatcheck.http.admin_requests import Wish, actor_of, read_query, read_wish
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices
from coatcheck.operators.modes import Modes


class ModeRoutes:
    """Answers with the operation as it is afterwards."""

    def __init__(self, services: HttpServices, modes: Modes) -> None:
        self._services = services
        self._modes = modes

    async def list(self, exchange: Exchange) -> None:
        read_query(exchange)
        states = [operation_fields(state) for state in await self._modes.list()]
        await answer_fields(exchange, page_fields("operations", states, None))

    async def show(self, exchange: Exchange) -> None:
        read_query(exchange)
        await answer_fields(exchange, operation_fields(await self._modes.find(exchange.item)))

    async def pause(self, exchange: Exchange) -> None:
        await self._set(exchange, OperationMode.PAUSED)

    async def resume(self, exchange: Exchange) -> None:
        await self._set(exchange, OperationMode.OPEN)

    async def drain(self, exchange: Exchange) -> None:
        await self._set(exchange, OperationMode.DRAINING)

    async def _set(self, exchange: Exchange, mode: OperationMode) -> None:
        await read_wish(self._services, exchange, Wish)
        state = await self._modes.set(exchange.item, mode, actor_of(exchange))
        await answer_fields(exchange, operation_fields(state))
