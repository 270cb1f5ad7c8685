"""Token buckets of this process: exact, and remembered only until they are full again."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from coatcheck.core.bucket import BucketSize
from coatcheck.core.quotas import LimitKey
from coatcheck.store.clock import Clock


class Draw(NamedTuple):
    """One token of one bucket. The key's tenant is the one who draws, or ALL where all draw from the same bucket."""

    key: LimitKey
    size: BucketSize


class Buckets(Protocol):
    """Where tokens are drawn from."""

    def take_now(self, draws: Sequence[Draw]) -> bool | None:
        """Take one token of each bucket, or of none where any has none. None: `take` has to ask somebody else."""
        ...

    async def take(self, draws: Sequence[Draw]) -> bool:
        """As `take_now`, after asking."""
        ...

    def give_back(self, draws: Sequence[Draw]) -> None:
        """Put back what was taken for nothing."""
        ...

    def missing(self, draws: Sequence[Draw]) -> Sequence[float]:
        """What is missing from each bucket, as far as this process knows."""
        ...


class _Spent(Struct):
    missing: float
    at_s: float
    full_at_s: float


class LocalBuckets:
    """The buckets of one process.

    Each bucket that is new here makes two others be looked at, the ones looked at longest ago: those that are full are
    forgotten, so that no more stay than were used lately.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: OrderedDict[LimitKey, _Spent] = OrderedDict()

    def __len__(self) -> int:
        return len(self._spent)

    async def take(self, draws: Sequence[Draw]) -> bool:
        return self.take_now(draws)

    def take_now(self, draws: Sequence[Draw]) -> bool:
        now_s = self._clock.monotonic_s()
        found = self._all_missing(draws, now_s)
        for draw, missing in zip(draws, found, strict=True):
            if not draw.size.allows(missing):
                return False
        for draw, missing in zip(draws, found, strict=True):
            self._put(draw, missing + 1, now_s)
        return True

    def give_back(self, draws: Sequence[Draw]) -> None:
        now_s = self._clock.monotonic_s()
        for draw, missing in zip(draws, self._all_missing(draws, now_s), strict=True):
            self._put(draw, max(missing - 1, 0.0), now_s)

    def missing(self, draws: Sequence[Draw]) -> Sequence[float]:
        return self._all_missing(draws, self._clock.monotonic_s())

    def put(self, draw: Draw, missing: float) -> None:
        """Take over what somebody else knows of a bucket."""
        self._put(draw, missing, self._clock.monotonic_s())

    def _all_missing(self, draws: Sequence[Draw], now_s: float) -> Sequence[float]:
        found = []
        for key, size in draws:
            spent = self._spent.get(key)
            found.append(0.0 if spent is None else size.missing_after(spent.missing, now_s - spent.at_s))
        return found

    def _put(self, draw: Draw, missing: float, now_s: float) -> None:
        rate = draw.size.rate
        if rate <= 0:
            return
        spent = self._spent.get(draw.key)
        if spent is None:
            self._forget_full(now_s)
            self._forget_full(now_s)
            spent = self._spent[draw.key] = _Spent(missing, now_s, now_s)
        spent.missing, spent.at_s, spent.full_at_s = missing, now_s, now_s + missing / rate

    def _forget_full(self, now_s: float) -> None:
        if self._spent:
            key, spent = self._spent.popitem(last=False)
            if spent.full_at_s > now_s:
                self._spent[key] = spent
