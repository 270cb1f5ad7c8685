"""Is the process alive, can it take work, what does it measure. None of it depends on workers."""

import asyncio

from coatcheck.core import limits
from coatcheck.http.exchange import Exchange
from coatcheck.http.refusals import draining
from coatcheck.http.services import HttpServices
from coatcheck.store.errors import StoreUnavailable

_PLAIN = b"text/plain; charset=utf-8"
_NOT_KEPT = ((b"cache-control", b"no-store"),)


class Health:
    """The three routes of operators and load balancers."""

    def __init__(self, services: HttpServices) -> None:
        self._services = services

    async def live(self, exchange: Exchange) -> None:
        await exchange.answer(200, _PLAIN, b"ok\n", _NOT_KEPT)

    async def ready(self, exchange: Exchange) -> None:
        """Raises Refused `draining`, or StoreUnavailable, also where the store takes too long.

        A disk without room changes nothing: reads go on, and no other process would be any better.
        """
        if self._services.draining.has_begun:
            raise draining()
        try:
            async with asyncio.timeout(limits.READY_CHECK_S_MAX):
                await self._services.store.check_health()
        except TimeoutError:
            raise StoreUnavailable("the store took too long to answer") from None
        await exchange.answer(200, _PLAIN, b"ready\n", _NOT_KEPT)

    async def metrics(self, exchange: Exchange) -> None:
        body, content_type = self._services.metrics.render()
        await exchange.answer(200, content_type.encode("ascii"), body, _NOT_KEPT)
