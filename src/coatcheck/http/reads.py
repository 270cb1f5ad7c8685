"""Reads of jobs. Each counts once where a tenant's reads are limited, held answers, streams and 304 included."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from coatcheck.admission.rates import READS
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL
from coatcheck.http.exchange import Exchange
from coatcheck.http.services import HttpServices

Answerer: TypeAlias = Callable[[Exchange], Awaitable[None]]


class CountedRead:
    """Lets a read through to its answerer, or refuses it before anything is looked up."""

    def __init__(self, services: HttpServices, answerer: Answerer) -> None:
        self._rates = services.rates
        self._metrics = services.metrics
        self._answerer = answerer

    def __call__(self, exchange: Exchange) -> Awaitable[None]:
        return self._counted(exchange) if self._rates.has(READS) else self._answerer(exchange)

    async def _counted(self, exchange: Exchange) -> None:
        operation = ALL if exchange.operation is None else exchange.operation.name
        try:
            await self._rates.take(READS, exchange.tenant, operation)
        except Refused:
            self._metrics.count("reads_refused", route=exchange.route)
            raise
        finally:
            exchange.rate_fields = self._rates.fields(READS, exchange.tenant, operation)
        await self._answerer(exchange)
