"""What jobs cost: counted as they spend, under their lease, and how long they have run."""

from collections.abc import Sequence

from coatcheck.core import limits
from coatcheck.core.costs import SpendTotals
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Spending
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.transaction import Transaction


class Costs(Facet):
    """The part of the engine's ClaimStore that counts costs."""

    async def spend(self, spending: Spending) -> SpendTotals:
        totals = await self._work.run(spend_all, spending)
        if totals is None:
            raise LeaseLost(spending.lease.job_id)
        return totals


async def ran_before_ms(transaction: Transaction, job_ids: Sequence[str]) -> dict[str, int]:
    """How long earlier attempts of these jobs ran; no entry for a job that had none."""
    rows = await transaction.rows("ran_before", job_ids) if job_ids else ()
    return {job_id: ran_ms for job_id, ran_ms in rows}  # noqa: C416 - a row is no tuple


async def spend_all(transaction: Transaction, spendings: Sequence[Spending]) -> Sequence[SpendTotals | None]:
    """Count what attempts spend; what stands is read under the same lease. None where the lease is lost."""
    answers: list[SpendTotals | None] = []
    for spending in spendings:
        lease, window = spending.lease, spending.window
        named = (lease.job_id, lease.attempt, lease.token, spending.kind)
        times = (window.length_ms, window.began_at)
        await transaction.run("spend", *named, spending.units, spending.number, *times, limits.SPENT_MILLIONTHS_MAX)
        row = await transaction.row("find_spent", *named, *times)
        answers.append(None if row is None else SpendTotals(*row))
    return answers
