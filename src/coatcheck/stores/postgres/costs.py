"""What jobs cost: counted as they spend, under their lease, and how long they have run."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.costs import JobCost, Purses, SpendTotals, Window
from coatcheck.store.costs import SpendingRow
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Spending, Submission, purses_of
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.rows import Row, columns
from coatcheck.stores.postgres.transaction import Transaction


class Costs(Facet):
    """The engine's CostStore, and the part of its ClaimStore that counts costs."""

    async def spend(self, spending: Spending) -> SpendTotals:
        totals = await self._spends.run(spend_all, spending)
        if totals is None:
            raise LeaseLost(spending.lease.job_id)
        return totals

    async def list_spending(self, tenant: str, limit: int, before: SpendingRow | None = None) -> Sequence[SpendingRow]:
        key: Row = (None,) * 4
        if before is not None:
            key = (before.window.began_at, before.kind, before.window.length_ms, before.operation)
        rows = await self._transactions.read("list_spending", tenant, limit, *key)
        return [SpendingRow(row[0], Window(row[1], row[2]), row[3], row[4], row[5]) for row in rows]

    async def list_job_costs(self, job_id: str) -> Sequence[JobCost]:
        return [JobCost(*row) for row in await self._transactions.read("list_job_costs", job_id)]


async def ran_before_ms(transaction: Transaction, job_ids: Sequence[str]) -> dict[str, int]:
    """How long earlier attempts of these jobs ran; no entry for a job that had none."""
    rows = await transaction.rows("ran_before", job_ids) if job_ids else ()
    return {job_id: ran_ms for job_id, ran_ms in rows}  # noqa: C416 - a row is no tuple


async def read_purses(transaction: Transaction, submissions: Sequence[Submission]) -> Purses:
    """What is used of every budget that one of these meets."""
    wanted = {purse for submission in submissions for purse in purses_of(submission)}
    rows = [(tenant, kind, *window, operation) for tenant, kind, window, operation in sorted(wanted)]
    found = await transaction.rows("used_of_budgets", *columns(rows, 5)) if rows else ()
    return Purses({(row[0], row[1], Window(row[2], row[3]), row[4]): row[5] for row in found})


async def charge(transaction: Transaction, submissions: Sequence[Submission]) -> None:
    """Charge the tenants of submissions that are accepted, as this transaction has found that they may be."""
    rows = [
        (one.job_id, one.tenant, one.operation, each.kind, each.units, each.window.length_ms, each.window.began_at)
        for one in submissions
        for each in one.charges
    ]
    if rows:
        await transaction.run("charge", *columns(rows, 7), limits.SPENT_MILLIONTHS_MAX)


async def give_back(transaction: Transaction, job_ids: Sequence[str]) -> None:
    """Give tenants back what jobs were charged that end without ever having started."""
    if job_ids:
        await transaction.run("give_back", job_ids)


async def spend_all(transaction: Transaction, spendings: Sequence[Spending]) -> Sequence[SpendTotals | None]:
    """Count what attempts spend; what stands is read under the same lease. None where the lease is lost.

    In one order of rows: two processes that count for the same tenants never wait for each other.
    """
    answers: list[SpendTotals | None] = [None] * len(spendings)
    for place in sorted(range(len(spendings)), key=lambda place: _place_of(spendings[place])):
        spending = spendings[place]
        lease, window = spending.lease, spending.window
        named = (lease.job_id, lease.attempt, lease.token, spending.kind)
        times = (window.length_ms, window.began_at)
        await transaction.run("spend", *named, spending.units, spending.number, *times, limits.SPENT_MILLIONTHS_MAX)
        row = await transaction.row("find_spent", *named, *times)
        answers[place] = None if row is None else SpendTotals(*row)
    return answers


def _place_of(spending: Spending) -> tuple[str, str, int, int, str, str, int]:
    (tenant, operation), window, lease = spending.whose, spending.window, spending.lease
    return tenant, spending.kind, window.length_ms, window.began_at, operation, lease.job_id, spending.number
