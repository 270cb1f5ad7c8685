"""What jobs cost: counted as they spend, under their lease, and how long they have run."""

from collections.abc import Sequence

import msgspec

from coatcheck.core import limits
from coatcheck.core.costs import SpendTotals
from coatcheck.store.errors import LeaseLost
from coatcheck.store.records import Spending
from coatcheck.stores.sqlite.facet import Facet
from coatcheck.stores.sqlite.transaction import Transaction

_RAN: msgspec.json.Decoder[list[tuple[str, int]]] = msgspec.json.Decoder(list[tuple[str, int]])


class Costs(Facet):
    """The part of the engine's ClaimStore that counts costs."""

    async def spend(self, spending: Spending) -> SpendTotals:
        totals = await self._writer.run(lambda transaction: _spend(transaction, spending))
        if totals is None:
            raise LeaseLost(spending.lease.job_id)
        return totals


def ran_before_ms(transaction: Transaction, job_ids: Sequence[str]) -> dict[str, int]:
    """How long earlier attempts of these jobs ran; no entry for a job that had none."""
    return dict(transaction.read_many("ran_before", [(job_id,) for job_id in job_ids], _RAN))


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
