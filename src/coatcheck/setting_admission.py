"""The settings that say how fast work may come in, and how much of it."""

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_settings import NoDecode

from coatcheck.core import limits
from coatcheck.core.costs import Budget, declared_budgets
from coatcheck.setting_values import DURATION, RATES, LimitsUrl, Seconds, listed, secret, setting

_RATE = f"a number a second from 0 to {limits.RATE_MAX:,}"
_JOBS = f"a whole number from 0 to {limits.TENANT_JOBS_MAX:,}"
_BURST = f"a number from 0 to {limits.RATE_MAX:,}"

Amount: TypeAlias = Annotated[float, Field(ge=0, le=limits.RATE_MAX)]
Jobs: TypeAlias = Annotated[int, Field(ge=0, le=limits.TENANT_JOBS_MAX)]


def _budgets(value: Any) -> tuple[Budget, ...]:
    texts = listed(value)
    return tuple(declared_budgets(texts).values()) if texts else ()


BudgetTexts: TypeAlias = Annotated[tuple[Budget, ...], NoDecode, BeforeValidator(_budgets)]


def _limit(form: str, description: str, example: Any) -> Any:
    return setting(None, RATES, f"{form}; left out: unlimited", description, example)


def _burst(description: str, example: Any) -> Any:
    return setting(None, RATES, f"{_BURST}; left out: what comes in within a second", description, example)


class AdmissionSettings(BaseModel):
    """Mixed into Settings."""

    tenant_submit_rate: Amount | None = _limit(
        _RATE, "Jobs that each tenant may hand in a second, over all operations; more are answered 429.", 50
    )
    tenant_submit_burst: Amount | None = _burst("Jobs that each tenant may hand in at once after a pause.", 200)
    tenant_read_rate: Amount | None = _limit(
        _RATE, "Reads of jobs, lists and results that each tenant may make a second; more are answered 429.", 100
    )
    tenant_read_burst: Amount | None = _burst("Reads that each tenant may make at once after a pause.", 400)
    tenant_queued_max: Jobs | None = _limit(
        _JOBS, "Jobs of each tenant that may wait at once, over all operations; more are answered 429.", 1000
    )
    tenant_running_max: Jobs | None = _limit(
        _JOBS, "Jobs of each tenant that may run at once, over all operations and workers; the others wait.", 20
    )
    submit_rate: Amount | None = _limit(
        _RATE, "Jobs that all tenants together may hand in a second; more are answered 503.", 2000
    )
    submit_burst: Amount | None = _burst("Jobs that all tenants together may hand in at once after a pause.", 4000)
    budgets: BudgetTexts = setting(
        (),
        RATES,
        '"UNITS KIND / WINDOW", several with commas between, each kind once',
        "What each tenant's jobs may cost in each window, by kind; more are answered 429 budget-exceeded. Windows"
        " follow each other from 1970-01-01T00:00:00Z on.",
        "10000 tokens / 1d, 500 calls / 1h",
    )
    queue_depth_max: Amount | None = _limit(
        f"a number from 0 to {limits.RATE_MAX:,}",
        "Jobs that may wait in all queues together; more are answered 503.",
        100_000,
    )
    queue_age_max_s: Seconds | None = setting(
        None,
        RATES,
        f"{DURATION}; left out: unlimited",
        "How long the oldest job that could start may have waited before new work is answered 503.",
        "10m",
        ge=0,
    )
    limits_store: LimitsUrl | None = secret(
        None,
        RATES,
        "redis://host:port, rediss://host:port, or unix:///path of a socket",
        "A Valkey or Redis server on which all processes share the rates. Without it, or while it is away, each process"
        " counts for itself. Needs coatcheck[valkey].",
        "redis://:password@valkey.internal:6379/0",
    )
