"""What jobs cost: counted as they spend, under their lease, and how long they have run."""

from collections.abc import Sequence

import msgspec

from coatcheck.core import limits
from coatcheck.core.costs import JobCost, Purses, SpendTotals, Window
from coatcheck.store.costs import SpendingRow
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Spending, Submission, purses_of
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.rows import Place
from coatcheck.stores.sqlite.transaction import Transaction

_USED: msgspec.json.Decoder[list[tuple[str, str, int, int, str, int]]] = msgspec.json.Decoder(
    list[tuple[str, str, int, int, str, int]]
)
_RAN: msgspec.json.Decoder[list[tuple[str, int]]] = msgspec.json.Decoder(list[tuple[str, int]])


class Costs(Facet):
    """The engine's CostStore, and the part of its ClaimStore that counts costs."""

    async def spend(self, spending: Spending) -> SpendTotals:
        totals = await self._writer.run(lambda transaction: _spend(transaction, spending))
        if totals is None:
            raise LeaseLost(spending.lease.job_id)
        return totals

    async def list_spending(self, tenant: str, limit: int, before: SpendingRow | None = None) -> Sequence[SpendingRow]:
        found = self._readers.here(
            lambda snapshot: snapshot.rows(
                "list_spending",
                tenant=tenant,
                limit=limit,
                window_at=before and before.window.began_at,
                kind=before and before.kind,
                window_ms=before and before.window.length_ms,
                operation=before and before.operation,
            )
        )
        return [SpendingRow(kind, Window(at, ms), operation, *sums) for kind, at, ms, operation, *sums in found]

    async def list_job_costs(self, job_id: str) -> Sequence[JobCost]:
        return [
            JobCost(*row) for row in self._readers.here(lambda snapshot: snapshot.rows("list_job_costs", job_id=job_id))
        ]


def ran_before_ms(transaction: Transaction, job_ids: Sequence[str]) -> dict[str, int]:
    """How long earlier attempts of these jobs ran; no entry for a job that had none."""
    return dict(transaction.read_many("ran_before", [(job_id,) for job_id in job_ids], _RAN))


def read_purses(transaction: Transaction, submissions: Sequence[Submission]) -> Purses:
    """What is used of every budget that one of these meets."""
    wanted = {purse for submission in submissions for purse in purses_of(submission)}
    rows = [(tenant, kind, *window, operation) for tenant, kind, window, operation in sorted(wanted)]
    found = transaction.read_many("used_of_budgets", rows, _USED) if rows else []
    return Purses({(tenant, kind, Window(at, ms), operation): used for tenant, kind, at, ms, operation, used in found})


def charge(transaction: Transaction, submissions: Sequence[Submission]) -> None:
    """Charge the tenants of submissions that are accepted, as this transaction has found that they may be."""
    charges = [(submission, charge) for submission in submissions for charge in submission.charges]
    rows = [(one.job_id, each.kind, each.units, each.window.length_ms, each.window.began_at) for one, each in charges]
    transaction.run_many("insert_job_cost", rows)
    for submission, each in charges:
        transaction.run(
            "add_charged",
            tenant=submission.tenant,
            kind=each.kind,
            window_ms=each.window.length_ms,
            window_at=each.window.began_at,
            operation=submission.operation,
            units=each.units,
            most=limits.SPENT_MILLIONTHS_MAX,
        )


def give_back(transaction: Transaction, places: Sequence[Place]) -> None:
    """Give tenants back what jobs were charged that end without ever having started."""
    for place in places:
        transaction.run("give_back", job_id=place.job_id, tenant=place.tenant, operation=place.operation)
        transaction.run("forget_charges", job_id=place.job_id)


def _spend(transaction: Transaction, spending: Spending) -> SpendTotals | None:
    lease, window = spending.lease, spending.window
    named = {
        "job_id": lease.job_id,
        "attempt": lease.attempt,
        "token": lease.token,
        "kind": spending.kind,
        "window_ms": window.length_ms,
        "window_at": window.began_at,
    }
    added = {**named, "units": spending.units, "most": limits.SPENT_MILLIONTHS_MAX}
    if transaction.run("spend", number=spending.number, **added):
        transaction.run("add_spent", **added)
    row = transaction.row("find_spent", **named)
    return None if row is None else SpendTotals(*row)
