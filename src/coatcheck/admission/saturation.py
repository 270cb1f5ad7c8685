"""Is there room in the queue? By its depth, by the age of its oldest job, and by when one more job would start.

Depth and age are of a measure at most a second or so old and of what this process let in since. The other processes
may let in more meanwhile: a limit of the whole queue can be passed by what they accept in a second.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from coatcheck.admission.forecasts import Forecast, Forecasts
from coatcheck.admission.measures import Measures
from coatcheck.admission.options import Admitted
from coatcheck.admission.queue_full import too_many_queued
from coatcheck.app import Operation
from coatcheck.core import limits
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policy
from coatcheck.core.problems import Refused
from coatcheck.core.quotas import ALL, Limit, LimitBook, LimitName, LimitSource
from coatcheck.store.clock import Clock

_UNKNOWN_S: Final = 5.0


class Saturation:
    """Refuses what the queue has no room for, and counts what is let in.

    Args:
        source: of the limits of the moment.
        measures: of all queues.
        forecasts: made of them.
        clock: of this process.
    """

    def __init__(self, source: LimitSource, measures: Measures, forecasts: Forecasts, clock: Clock) -> None:
        self._source = source
        self._measures = measures
        self._forecasts = forecasts
        self._clock = clock
        self._held_of: LimitBook | None = None
        self._held_in: dict[str, Sequence[Limit]] = {}

    def is_blind(self, operation: str) -> bool:
        """Whether a limit holds and the queue must be looked at first: `Measures.measured` is to be awaited."""
        return bool(self._held(operation)) and not self._measures.look()

    def require_room(self, operation: Operation, admitted: Admitted, tenant: str) -> None:
        """Return if the queue has room for this job.

        Raises:
            Refused: `saturated`, or `too-many-queued` where it is the tenant's own jobs that make it late.
        """
        held = self._held(operation.name)
        # Where nothing is known, the store cannot be asked, and will say so itself.
        if held and self._measures.is_known:
            self._require_limits(held)
        latest = _latest_start(operation.policy, admitted)
        if latest is not None:
            self._require_start_in_time(operation, admitted, tenant, latest)

    def _held(self, operation: str) -> Sequence[Limit]:
        """The limits of depth and age that all tenants share, in this operation and in all of them."""
        book = self._source.book
        if book is not self._held_of:
            self._held_of, self._held_in = book, {}
        held = self._held_in.get(operation)
        if held is None:
            found = (book.of(name, ALL, operation) for name in (LimitName.QUEUED, LimitName.AGE_S))
            shared = {limit.key: limit for limits_of in found for limit in limits_of if not limit.is_of_tenant}
            held = self._held_in[operation] = tuple(shared.values())
        return held

    def _require_limits(self, held: Sequence[Limit]) -> None:
        measures, now = self._measures, self._clock.now()
        for (name, _, scope), most in held:
            total = measures.total(scope)
            if name == LimitName.QUEUED:
                is_over = total.waiting + measures.since(scope) + 1 > most
            else:
                is_over = total.is_older(most, now)
            if is_over:
                raise _full(name, scope, self._drain_s(scope, name, most))

    def _depth(self, scope: str) -> int:
        return self._measures.total(scope).waiting + self._measures.since(scope)

    def _drain_s(self, scope: str, name: str, most: float) -> float:
        """When there may be room again, from what the queues are doing."""
        starts_per_s = self._measures.total(scope).starts_per_s
        if name == LimitName.AGE_S or not starts_per_s:
            return _UNKNOWN_S
        return (self._depth(scope) + 1 - most) / starts_per_s

    def _require_start_in_time(self, operation: Operation, admitted: Admitted, tenant: str, latest: InstantMs) -> None:
        now = self._clock.now()
        if admitted.start_at > now:
            return
        self._measures.look()
        forecast = self._forecasts.of(operation.name)
        if forecast is None:
            return
        own = forecast.own_ahead(tenant, admitted.priority, self._measures.since(operation.name, tenant))
        starts_at = _latest_likely(forecast, tenant, own)
        if starts_at <= latest:
            return
        wait = f"This job would wait for about {(starts_at - now) / 1000:.0f} s, and must start within"
        wait = f"{wait} {max(latest - now, 0) / 1000:.0f} s"
        retry_after_s = _retry_after_s((starts_at - latest) / 1000)
        most = _most_in_time(forecast, tenant, own, latest)
        if most == 0:
            raise _saturated(f"{wait}.", retry_after_s)
        detail = f"{wait}: the tenant's own jobs are before it."
        raise too_many_queued(detail, f"in-time-{operation.name}", most, retry_after_s)


def _latest_start(policy: Policy, admitted: Admitted) -> InstantMs | None:
    if policy.queue_limit_s is None:
        return admitted.deadline_at
    latest = admitted.start_at + round(policy.queue_limit_s * 1000)
    return latest if admitted.deadline_at is None else min(latest, admitted.deadline_at)


def _latest_likely(forecast: Forecast, tenant: str, own: float) -> InstantMs:
    """By then 19 of 20 such jobs have started. On the mean, half of those that are just let in would be late."""
    return forecast.at(forecast.pace.most_s(forecast.ahead(tenant, own)))


def _most_in_time(forecast: Forecast, tenant: str, own: float, latest: InstantMs) -> int:
    """How many jobs the tenant may have queued for the last of them to start by then, where one behind all is late."""
    return bisect_right(range(math.ceil(own)), latest, key=lambda ahead: _latest_likely(forecast, tenant, ahead))


def _full(name: str, scope: str, drain_s: float) -> Refused:
    what = "jobs wait in the queue" if name == LimitName.QUEUED else "old jobs wait in the queue"
    whose = "of this service" if scope == ALL else f"of {scope!r}"
    return _saturated(f"Too many {what} {whose}.", _retry_after_s(drain_s))


def _saturated(detail: str, retry_after_s: int) -> Refused:
    return Refused("saturated", detail, headers=[("Retry-After", str(retry_after_s))])


def _retry_after_s(seconds: float) -> int:
    return min(max(math.ceil(seconds), limits.RETRY_AFTER_S_MIN), limits.RETRY_AFTER_S_MAX)
