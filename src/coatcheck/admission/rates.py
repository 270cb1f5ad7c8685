"""How fast work may be handed in and jobs may be read: a token for each, of every bucket whose limit holds."""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from coatcheck.admission.buckets import Buckets, Draw
from coatcheck.core import limits
from coatcheck.core.bucket import bucket_size
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, Limit, LimitBook, LimitName


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


class Permit:
    """The tokens that one request took."""

    __slots__ = ("_buckets", "_draws")

    def __init__(self, buckets: Buckets, draws: Sequence[Draw]) -> None:
        self._buckets = buckets
        self._draws = draws

    def give_back(self) -> None:
        """What they were taken for did not come about. To be called once at most."""
        self._buckets.give_back(self._draws)


class _Plan(NamedTuple):
    """All buckets that a tenant draws from in one operation; the first `own` are its own."""

    draws: tuple[Draw, ...]
    own: int
    names: tuple[str, ...]
    policy: bytes


class Rates:
    """Takes tokens where a rate is limited, and says how many are left.

    Args:
        book: the limits of the moment.
        buckets: where the tokens are.
    """

    def __init__(self, book: Callable[[], LimitBook], buckets: Buckets) -> None:
        self._book = book
        self._buckets = buckets
        self._planned_for: LimitBook | None = None
        self._plans: dict[tuple[str, str, str], _Plan] = {}

    def has(self, rule: RateRule) -> bool:
        """Whether anybody is limited. If not, nothing else needs to be asked."""
        return self._book().has(rule.rate)

    async def take(self, rule: RateRule, tenant: str, operation: str = ALL) -> Permit:
        """Take the tokens of one request. Without an operation, those of what holds for all of them together.

        Raises:
            Refused: `saturated` where all tenants together are too fast, else the rule's own code. Nothing was taken.
        """
        draws = self._plan(rule, tenant, operation).draws
        if not draws or await self._buckets.take(draws):
            return Permit(self._buckets, draws)
        raise self._refusal(rule, tenant, operation)

    def fields(self, rule: RateRule, tenant: str, operation: str = ALL) -> list[tuple[bytes, bytes]]:
        """RateLimit-Policy and RateLimit of the tenant's own limits; empty where it has none.

        That others use up what all share is nothing a tenant is told.
        """
        plan = self._plan(rule, tenant, operation)
        if not plan.own:
            return []
        draws = plan.draws[: plan.own]
        left = [
            f'"{name}";r={draw.size.tokens(missing)};t={_whole_s(draw.size.next_token_s(missing))}'
            for name, draw, missing in zip(plan.names, draws, self._buckets.missing(draws), strict=True)
        ]
        return [(b"ratelimit-policy", plan.policy), (b"ratelimit", ", ".join(left).encode("ascii"))]

    def _refusal(self, rule: RateRule, tenant: str, operation: str) -> Refused:
        plan = self._plan(rule, tenant, operation)
        known = zip(plan.draws, self._buckets.missing(plan.draws), strict=True)
        short = [(draw, missing) for draw, missing in known if not draw.size.allows(missing)]
        retry_after = [("Retry-After", str(_whole_s(_wait_s(short))))]
        # A bucket of many processes may have filled up again by now.
        own = [draw for draw, _ in short if draw.key[1] != ALL] or ([] if short else plan.draws[: plan.own])
        if own:
            return Refused(rule.code, f"This tenant {rule.act} than it may: {_in_words(own[0])}.", headers=retry_after)
        return Refused("saturated", "All tenants together are faster than this service allows.", headers=retry_after)

    def _plan(self, rule: RateRule, tenant: str, operation: str) -> _Plan:
        book = self._book()
        if book is not self._planned_for:
            self._planned_for, self._plans = book, {}
        key = (rule.name, tenant, operation)
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
    own = sum(limit.is_of_tenant for limit in held)
    names = tuple(rule.name if draw.key[2] == ALL else f"{rule.name}-{draw.key[2]}" for draw in draws[:own])
    policy = ", ".join(
        f'"{name}";q={draw.size.quota};w={draw.size.window_s}' for name, draw in zip(names, draws[:own], strict=True)
    )
    return _Plan(draws, own, names, policy.encode("ascii"))


def _scope(limit: Limit) -> tuple[bool, str]:
    return limit.is_of_tenant, limit.key[2]


def _wait_s(short: Sequence[tuple[Draw, float]]) -> float:
    return max((draw.size.next_token_s(missing) for draw, missing in short), default=0.0)


def _in_words(draw: Draw) -> str:
    if draw.size.is_shut:
        return "none is allowed"
    where = "" if draw.key[2] == ALL else f" in {draw.key[2]!r}"
    return f"{draw.size.rate:g} a second{where}, {draw.size.burst:g} at once"


def _whole_s(seconds: float) -> int:
    """Seconds as advice: rounded up, so that whoever follows it comes late rather than early, but for ages."""
    return max(1, math.ceil(min(seconds, limits.RATE_RETRY_AFTER_S_MAX)))
