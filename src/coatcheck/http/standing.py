"""Waits of clients for their jobs, which end when the client's credential does."""

from collections.abc import Callable

from coatcheck.core.job import JobRecord
from coatcheck.http.exchange import Exchange
from coatcheck.http.refusals import unauthenticated
from coatcheck.http.services import HttpServices
from coatcheck.store.records import Tombstone


class Standing:
    """What one request's identity is worth, from the moment it was let in."""

    def __init__(self, services: HttpServices, exchange: Exchange) -> None:
        self._authentication = services.authentication if services.settings.has_auth else None
        self._watch = services.watch
        self._clock = services.store.clock
        self._identity = exchange.identity
        self._version = exchange.controls_version

    async def wait(
        self, job_id: str, is_enough: Callable[[JobRecord], bool], timeout_s: float
    ) -> JobRecord | Tombstone | None:
        """As `JobWatch.wait`, for as long as the identity stands.

        Raises:
            Refused: `unauthenticated`: it does not any more.
            StoreUnavailable: the job could not be read.
        """
        ends_at_s = self._clock.monotonic_s() + timeout_s
        while True:
            left_s = max(ends_at_s - self._clock.monotonic_s(), 0.0)
            found = await self._watch.wait(
                self._identity.tenant, job_id, lambda job: self._is_in_doubt() or is_enough(job), left_s
            )
            if not self._is_in_doubt():
                return found
            await self._check()
            if not isinstance(found, JobRecord) or is_enough(found):
                return found

    def _is_in_doubt(self) -> bool:
        """Whether operators have changed anything since it was looked at, or the credential has ended by itself."""
        authentication = self._authentication
        if authentication is None:
            return False
        return self._controls_version() != self._version or self._identity.has_ended(self._clock.now())

    async def _check(self) -> None:
        self._version = self._controls_version()
        if self._authentication is not None and not await self._authentication.is_standing(self._identity):
            raise unauthenticated()

    def _controls_version(self) -> int:
        return 0 if self._authentication is None else self._authentication.directory.controls.version
