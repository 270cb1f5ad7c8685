"""Builds of one app that meet at one store, as they do while a new version is rolled out."""

from typing import Any

from coatcheck import App, Backoff, Job
from harness.steps import Task, perform

QUICK = Backoff(first_s=0.05, factor=1.0, max_s=0.05)

before = App("builds")
after = App("builds")
without_other = App("builds")


@before.operation("ledger", max_attempts=3, backoff=QUICK)
async def loose_ledger(request: int | str, job: Job) -> int | str:
    return request


@after.operation("ledger", max_attempts=3, backoff=QUICK)
async def strict_ledger(request: int, job: Job) -> int:
    """The same operation of the same version, which its author made stricter."""
    return request


@before.operation("other", max_attempts=3, backoff=QUICK)
@after.operation("other", max_attempts=3, backoff=QUICK)
async def other(request: Task, job: Job) -> Any:
    return await perform(request, job)


@without_other.operation("ledger", max_attempts=3, backoff=QUICK)
async def only_ledger(request: int | str, job: Job) -> int | str:
    return request
