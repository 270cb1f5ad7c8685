"""How an operation's policy is declared, and what is wrong with a declaration in one sentence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from coatcheck.core import costs, limits
from coatcheck.core.backoff import Backoff
from coatcheck.core.costs import Cost
from coatcheck.core.durations import Duration, seconds
from coatcheck.core.policy import Policy, Retention, RunsIn
from coatcheck.core.tenancy import Revocation


class DeclarationError(Exception):
    """An app or operation is declared wrongly; the message says what and how to mend it in one sentence."""


class RetentionOptions(TypedDict, total=False):
    """Each kind of trace with its own time, from the end of the job. What is left out keeps its default."""

    succeeded: Duration
    failed: Duration
    cancelled: Duration
    result: Duration
    tombstone: Duration


class PolicyOptions(TypedDict, total=False):
    """The keyword options of `App.operation`. Durations are texts ("2m"), seconds or timedelta; None: no limit.

    max_attempts: starts that count, 1 to 1000 (5). backoff: waits between them (1 s doubling to 5 min, full jitter).
    timeout: of one attempt ("10m"). processing_max: of all attempts together (None).
    queue_limit: latest first start after a job is ready ("1h").
    deadline: end to end, for submissions that set none (None); deadline_max: the largest a client may set (None).
    retention: one time for all traces, or a mapping by kind. key_required: refuse work without `Idempotency-Key`.
    key_window: how long a key is remembered ("24h"). payload_bytes_max, result_bytes_max: in bytes (1 MiB, 16 MiB).
    concurrency: attempts running at once over all workers of the store (None). priorities: the range a client may
    ask for, lower first ((0, 9)). runs_in: "loop" for `async def`, "thread" for `def`, or "process" for a process of
    the job's own. cost: the units that a job is charged when it is accepted, a number or a function of the request, by
    kind (none). spend_max: the units that a job may spend, by kind ({"calls": 20}; none). budget: what each tenant's
    jobs of the operation may cost, one text for each kind ("10000 tokens / 1d"; none).
    tenant_submit_rate, submit_rate: jobs a second that each tenant, or all together, may hand in (None);
    tenant_submit_burst, submit_burst: how many at once after a pause (a second's worth). queue_depth_max: jobs
    waiting (None); queue_age_max: how long the oldest may have waited when more is taken (None). tenant_queued,
    tenant_running: the most jobs of each tenant that may wait, or run, at once over the whole store (None). max_share:
    the part of one worker's places that one tenant may have at once, above 0 to 1; one place in any case (None).
    on_revoke: what becomes of the jobs of a tenant that is revoked without a named policy: "finish", "quarantine",
    "cancel" or "erase" (None: what the setting says).
    """

    max_attempts: int
    backoff: Backoff
    timeout: Duration | None
    processing_max: Duration | None
    queue_limit: Duration | None
    deadline: Duration | None
    deadline_max: Duration | None
    retention: Duration | RetentionOptions
    key_required: bool
    key_window: Duration
    payload_bytes_max: int
    result_bytes_max: int
    concurrency: int | None
    priorities: tuple[int, int]
    runs_in: Literal["loop", "thread", "process"]
    cost: Cost | Mapping[str, Cost]
    spend_max: Mapping[str, float]
    budget: str | Sequence[str]
    tenant_submit_rate: float | None
    tenant_submit_burst: float | None
    submit_rate: float | None
    submit_burst: float | None
    queue_depth_max: int | None
    queue_age_max: Duration | None
    tenant_queued: int | None
    tenant_running: int | None
    max_share: float | None
    on_revoke: Literal["finish", "quarantine", "cancel", "erase"] | None


def policy_from(options: PolicyOptions, is_async: bool) -> Policy:
    """Turn declared options into a policy.

    Raises:
        DeclarationError: an option is unknown or its value cannot hold.
    """
    fields: dict[str, Any] = {"runs_in": RunsIn.LOOP if is_async else RunsIn.THREAD}
    for name, value in options.items():
        if name not in _READERS:
            raise DeclarationError(f"unknown option {name!r}; the options are {', '.join(_READERS)}")
        try:
            field, read = _READERS[name]
            fields |= read(value) if field is None else {field: read(value)}
        except (TypeError, ValueError) as error:
            raise DeclarationError(f"{name}: {error}") from error
    policy = Policy(**fields)
    _check_together(policy, is_async)
    return policy


def _check_together(policy: Policy, is_async: bool) -> None:
    if policy.runs_in is RunsIn.LOOP and not is_async:
        raise DeclarationError(
            'runs_in="loop" needs an `async def` handler; a `def` handler runs in "thread" or "process"'
        )
    if policy.runs_in is RunsIn.THREAD and is_async:
        raise DeclarationError(
            'runs_in="thread" needs a `def` handler; an `async def` handler runs in "loop" or "process"'
        )
    default, largest = policy.deadline_default_s, policy.deadline_max_s
    if default is not None and largest is not None and default > largest:
        raise DeclarationError("deadline: the default is later than deadline_max")


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{value!r} is not a whole number from {least} to {most}")
        return value

    return read


def _amount(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= limits.RATE_MAX:
        raise ValueError(f"{value!r} is not a number from 0 to {limits.RATE_MAX}")
    return float(value)


def _share(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1:
        raise ValueError(f"{value!r} is not a number above 0 and up to 1")
    return float(value)


def _positive(value: Duration) -> float:
    duration_s = seconds(value)
    if duration_s == 0:
        raise ValueError("it must be more than zero; leave it out for the default")
    return duration_s


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not True or False")
    return value


def _backoff(value: Any) -> Backoff:
    if not isinstance(value, Backoff):
        raise ValueError("it must be a coatcheck.Backoff(first_s, factor, max_s)")
    return value


def _retention(value: Duration | Mapping[str, Duration]) -> Retention:
    if not isinstance(value, Mapping):
        time_s = seconds(value)
        return Retention(succeeded_s=time_s, failed_s=time_s, cancelled_s=time_s, result_s=time_s)
    unknown = set(value) - set(RetentionOptions.__annotations__)
    if unknown:
        raise ValueError(f"unknown kind {min(unknown)!r}; the kinds are {', '.join(RetentionOptions.__annotations__)}")
    return Retention(**{f"{kind}_s": seconds(time) for kind, time in value.items()})


def _priorities(value: Any) -> dict[str, int]:
    read = _whole(0, limits.PRIORITY_MAX)
    least, most = (read(end) for end in value)
    if least > most:
        raise ValueError("the first of the range is above the last")
    return {"priority_min": least, "priority_max": most}


_READERS: dict[str, tuple[str | None, Callable[[Any], Any]]] = {
    "max_attempts": ("max_attempts", _whole(1, limits.STARTS_MAX)),
    "backoff": ("backoff", _backoff),
    "timeout": ("timeout_s", _optional(_positive)),
    "processing_max": ("processing_max_s", _optional(_positive)),
    "queue_limit": ("queue_limit_s", _optional(_positive)),
    "deadline": ("deadline_default_s", _optional(_positive)),
    "deadline_max": ("deadline_max_s", _optional(_positive)),
    "retention": ("retention", _retention),
    "key_required": ("is_key_required", _flag),
    "key_window": ("key_window_s", _positive),
    "payload_bytes_max": ("payload_bytes_max", _whole(1, 64 * 1024 * 1024)),
    "result_bytes_max": ("result_bytes_max", _whole(1, 256 * 1024 * 1024)),
    "concurrency": ("concurrency_max", _optional(_whole(1, 100_000))),
    "priorities": (None, _priorities),
    "runs_in": ("runs_in", RunsIn),
    "cost": ("cost", costs.declared_costs),
    "spend_max": ("spend_max", costs.amounts),
    "budget": ("budgets", costs.declared_budgets),
    "tenant_submit_rate": ("tenant_submit_rate", _optional(_amount)),
    "tenant_submit_burst": ("tenant_submit_burst", _optional(_amount)),
    "submit_rate": ("submit_rate", _optional(_amount)),
    "submit_burst": ("submit_burst", _optional(_amount)),
    "queue_depth_max": ("queue_depth_max", _optional(_whole(0, limits.RATE_MAX))),
    "queue_age_max": ("queue_age_max_s", _optional(seconds)),
    "tenant_queued": ("tenant_queued_max", _optional(_whole(0, limits.TENANT_JOBS_MAX))),
    "tenant_running": ("tenant_running_max", _optional(_whole(0, limits.TENANT_JOBS_MAX))),
    "max_share": ("share_max", _optional(_share)),
    "on_revoke": ("on_revoke", _optional(Revocation)),
}
