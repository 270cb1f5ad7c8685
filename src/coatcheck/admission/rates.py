"""How fast work may be handed in and jobs may be read: a token for each, of every bucket whose limit holds."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from coatcheck.admission.buckets import Buckets, Draw
from coatcheck.core import limits
from coatcheck.core.bucket import bucket_size
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, Limit, LimitBook, LimitName, LimitSource


class RateRule(NamedTuple):
    """What is counted: the limits of its rate and burst, its name in header fields, and how a tenant is refused."""

    rate: LimitName
    burst: LimitName
    name: str
    code: str
    act: str


SUBMISSIONS: Final = RateRule(
    LimitName.SUBMIT_RATE, LimitName.SUBMIT_BURST, "submit", "rate-limited", "hands in work faster"
)
READS: Final = RateRule(LimitName.READ_RATE, LimitName.READ_BURST, "read", "polling-too-fast", "reads its jobs faster")


class _Plan(NamedTuple):
    """All buckets that a tenant draws from in one operation, and of those its own, with their names and policy."""

    draws: tuple[Draw, ...]
    own: tuple[Draw, ...]
    names: tuple[bytes, ...]
    policy: bytes


class Rates:
    """Takes tokens where a rate is limited, and says how many are left.

    Args:
        source: of the limits of the moment.
        buckets: where the tokens are.
    """

    def __init__(self, source: LimitSource, buckets: Buckets) -> None:
        self._source = source
        self._buckets = buckets
        self._planned_for: LimitBook | None = None
        self._plans: dict[tuple[str, str, str], _Plan] = {}

    def has(self, rule: RateRule) -> bool:
        """Whether anybody is limited. If not, nothing else needs to be asked."""
        return self._source.book.has(rule.rate)

    async def take(self, rule: RateRule, tenant: str, operation: str = ALL) -> Sequence[Draw]:
        """Take the tokens of one request. Without an operation, those of what holds for all of them together.

        Returns what was taken, for `give_back` where what it was taken for does not come about.

        Raises:
            Refused: `saturated` where all tenants together are too fast, else the rule's own code. Nothing was taken.
        """
        at_hand = self.take_at_hand(rule, tenant, operation)
        if at_hand is not None:
            return at_hand
        draws = self._plan(rule, tenant, operation).draws
        if not await self._buckets.take(draws):
            raise self._refusal(rule, tenant, operation)
        return draws

    def take_at_hand(self, rule: RateRule, tenant: str, operation: str = ALL) -> Sequence[Draw] | None:
        """The same where nobody else has to be asked; None where somebody has, and nothing was taken."""
        draws = self._plan(rule, tenant, operation).draws
        taken = self._buckets.take_now(draws) if draws else True
        if taken is None:
            return None
        if not taken:
            raise self._refusal(rule, tenant, operation)
        return draws

    def give_back(self, taken: Sequence[Draw]) -> None:
        """What the tokens were taken for did not come about. To be called once at most."""
        self._buckets.give_back(taken)

    def fields(self, rule: RateRule, tenant: str, operation: str = ALL) -> Sequence[tuple[bytes, bytes]]:
        """RateLimit-Policy and RateLimit of the tenant's own limits; empty where it has none.

        That others use up what all share is nothing a tenant is told.
        """
        plan = self._plan(rule, tenant, operation)
        if not plan.own:
            return ()
        left = []
        for name, draw, missing in zip(plan.names, plan.own, self._buckets.missing(plan.own), strict=True):
            tokens, next_s = draw.size.outlook(missing)
            left.append(b'"%b";r=%d;t=%d' % (name, tokens, _whole_s(next_s)))
        return (b"ratelimit-policy", plan.policy), (b"ratelimit", b", ".join(left))

    def _refusal(self, rule: RateRule, tenant: str, operation: str) -> Refused:
        plan = self._plan(rule, tenant, operation)
        known = zip(plan.draws, self._buckets.missing(plan.draws), strict=True)
        short = [(draw, missing) for draw, missing in known if not draw.size.allows(missing)]
        retry_after = [("Retry-After", str(_whole_s(_wait_s(short))))]
        # A bucket of many processes may have filled up again by now.
        own = [draw for draw, _ in short if draw.key[1] != ALL] or ([] if short else plan.own)
        if own:
            return Refused(rule.code, f"This tenant {rule.act} than it may: {_in_words(own[0])}.", headers=retry_after)
        return Refused("saturated", "All tenants together are faster than this service allows.", headers=retry_after)

    def _plan(self, rule: RateRule, tenant: str, operation: str) -> _Plan:
        book = self._source.book
        if book is not self._planned_for:
            self._planned_for, self._plans = book, {}
        key = rule.name, tenant, operation
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= limits.RATE_PLANS_MAX:
                self._plans.clear()
            plan = self._plans[key] = _plan_of(book, rule, tenant, operation)
        return plan


def _plan_of(book: LimitBook, rule: RateRule, tenant: str, operation: str) -> _Plan:
    bursts = {_scope(burst): burst.value for burst in book.of(rule.burst, tenant, operation)}
    # Where no operation is named, what holds for all of them is found twice.
    found = {_scope(limit): limit for limit in book.of(rule.rate, tenant, operation)}
    held = sorted(found.values(), key=lambda limit: not limit.is_of_tenant)
    draws = tuple(
        Draw(
            (rule.rate, tenant if limit.is_of_tenant else ALL, limit.key[2]),
            bucket_size(limit.value, bursts.get(_scope(limit))),
        )
        for limit in held
    )
    own = draws[: sum(limit.is_of_tenant for limit in held)]
    names = tuple(_name(rule, draw).encode("ascii") for draw in own)
    policy = b", ".join(
        b'"%b";q=%d;w=%d' % (name, draw.size.quota, draw.size.window_s) for name, draw in zip(names, own, strict=True)
    )
    return _Plan(draws, own, names, policy)


def _name(rule: RateRule, draw: Draw) -> str:
    return rule.name if draw.key[2] == ALL else f"{rule.name}-{draw.key[2]}"


def _scope(limit: Limit) -> tuple[bool, str]:
    return limit.is_of_tenant, limit.key[2]


def _wait_s(short: Sequence[tuple[Draw, float]]) -> float:
    return max((draw.size.outlook(missing)[1] for draw, missing in short), default=0.0)


def _in_words(draw: Draw) -> str:
    if draw.size.is_shut:
        return "none is allowed"
    where = "" if draw.key[2] == ALL else f" in {draw.key[2]!r}"
    return f"{draw.size.rate:g} a second{where}, {draw.size.burst:g} at once"


def _whole_s(seconds: float) -> int:
    """Seconds as advice: rounded up, so that whoever follows it comes late rather than early, but for ages."""
    return 1 if seconds <= 1 else math.ceil(min(seconds, limits.RATE_RETRY_AFTER_S_MAX))
