"""Token buckets that all processes share, on a server beside them; while it is away, each process has its own.

The requests that arrive while one call is on its way make the next call together. What the server says of a bucket
is noted here, so that a process left alone goes on from there.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from coatcheck.admission.buckets import Draw, LocalBuckets
from coatcheck.core import limits
from coatcheck.observe.metrics import Metrics
from coatcheck.observe.rounds import Rounds

CALL_S_MAX: Final = 0.25
_IDLE_S: Final = 60.0

Draws: TypeAlias = tuple[Draw, ...]
_Value = TypeVar("_Value")


class BucketsAway(Exception):
    """The server of the shared buckets did not answer in time, or not with an answer."""


class Ask(NamedTuple):
    """Tokens wanted of each of some buckets; less than 0: given back."""

    draws: Draws
    wanted: int


class Told(NamedTuple):
    """How many were got, and what is missing from each bucket now."""

    got: int
    missing: Sequence[float]


class BucketServer(Protocol):
    """Where shared buckets are kept."""

    async def take(self, asks: Sequence[Ask]) -> Sequence[Told]:
        """Serve each ask as far as there are tokens, in their order; none is asked to see if the server is there.

        Raises:
            BucketsAway: nothing is known of any of them.
        """
        ...

    async def close(self) -> None:
        """Let go of the server."""
        ...


class SharedBuckets:
    """Takes tokens of the shared buckets, or of this process's own while those cannot be reached."""

    def __init__(self, server: BucketServer, local: LocalBuckets, metrics: Metrics) -> None:
        self._server = server
        self._local = local
        self._metrics = metrics
        self._waiting: dict[Draws, list[asyncio.Future[bool]]] = {}
        self._returned: dict[Draws, int] = {}
        self._calling: asyncio.Task[None] | None = None
        self._is_away = False
        self._failure: BucketsAway | None = None
        self._rounds = Rounds("shared-limits", self._look_again, outages=(BucketsAway,))

    def start(self) -> None:
        """Look after the server, on the running event loop."""
        self._rounds.start()

    async def stop(self) -> None:
        """Let the call on its way come to its end, and let go of the server."""
        await self._rounds.stop()
        if self._calling is not None:
            await asyncio.gather(self._calling, return_exceptions=True)
        await self._server.close()

    def take_now(self, draws: Sequence[Draw]) -> bool | None:
        return self._take_locally(draws) if self._is_away else None

    async def take(self, draws: Sequence[Draw]) -> bool:
        taken = self.take_now(draws)
        if taken is not None:
            return taken
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tuple(draws), []).append(answer)
        self._call_soon()
        return await answer

    def give_back(self, draws: Sequence[Draw]) -> None:
        self._local.give_back(draws)
        if draws and not self._is_away:
            self._returned[tuple(draws)] = self._returned.get(tuple(draws), 0) + 1
            self._call_soon()

    def missing(self, draws: Sequence[Draw]) -> Sequence[float]:
        return self._local.missing(draws)

    def _call_soon(self) -> None:
        """Have a call made after this turn of the loop, with all that comes within it."""
        if self._calling is None or self._calling.done():
            self._calling = asyncio.get_running_loop().create_task(self._call())

    async def _call(self) -> None:
        while self._returned or self._waiting:
            returned = [Ask(draws, -count) for draws, count in _first(self._returned)]
            waiting = _first(self._waiting)
            asks = [*returned, *(Ask(draws, len(answers)) for draws, answers in waiting)]
            told = (await self._ask(asks))[len(returned) :]
            for (draws, answers), one in zip(waiting, told, strict=True):
                self._settle(draws, answers, one)

    async def _ask(self, asks: Sequence[Ask]) -> Sequence[Told]:
        if not self._is_away:
            try:
                return await self._within_time(asks)
            except BucketsAway as error:
                self._go_on_alone(error)
        return [Told(0, ()) for _ in asks]

    async def _within_time(self, asks: Sequence[Ask]) -> Sequence[Told]:
        try:
            async with asyncio.timeout(CALL_S_MAX):
                return await self._server.take(asks)
        except TimeoutError:
            raise BucketsAway(f"no answer within {CALL_S_MAX:g} s") from None

    def _settle(self, draws: Draws, answers: Sequence[asyncio.Future[bool]], told: Told) -> None:
        for draw, missing in zip(draws, told.missing, strict=False):
            self._local.put(draw, missing)
        for position, answer in enumerate(answers):
            if not answer.done():
                answer.set_result(self._take_locally(draws) if self._is_away else position < told.got)

    def _take_locally(self, draws: Sequence[Draw]) -> bool:
        self._metrics.count("limits_decided_locally")
        return self._local.take_now(draws)

    def _go_on_alone(self, failure: BucketsAway) -> None:
        self._is_away, self._failure = True, failure
        self._metrics.set("shared_limits_away", 1)
        self._returned.clear()
        self._rounds.wake()

    async def _look_again(self) -> float:
        """Report a failure once, for the log and the backoff; then try until the server answers."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._is_away:
            await self._within_time(())
            self._is_away = False
            self._metrics.set("shared_limits_away", 0)
        return _IDLE_S


def _first(pending: dict[Draws, _Value]) -> list[tuple[Draws, _Value]]:
    """Take out the first of them, as many as fit into one call."""
    keys = [key for key, _ in zip(pending, range(limits.SHARED_ASKS_MAX), strict=False)]
    return [(key, pending.pop(key)) for key in keys]
