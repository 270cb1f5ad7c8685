"""Turns in which no job may start are held, and come back when one may. None of it is part of a claim's transaction."""

from collections.abc import Iterable, Sequence

from coatcheck.core import limits
from coatcheck.core.starts import Starts, Turn
from coatcheck.core.terms import Terms
from coatcheck.store.records import HeldTurns, WakeUpKind
from coatcheck.stores.postgres.rows import columns
from coatcheck.stores.postgres.transaction import Transaction, Transactions


async def withhold_turns(transactions: Transactions, turns: Iterable[Turn], terms: Terms) -> None:
    """Hold turns that a claim found in vain.

    A job that ended since they were counted found nothing yet to bring back: hence the second look, after the commit.
    """
    rows = sorted(set(turns))
    if not rows:
        return

    async def act(transaction: Transaction) -> None:
        await transaction.rows("commit_cheaply")
        await transaction.run("withhold_turns", *columns(rows, 2))
        operations = sorted({operation for operation, _ in rows})
        await transaction.run("forget_turns", operations, limits.SWEEP_BATCH_MAX)

    await transactions.run(act)
    await _review(transactions, rows, terms)


async def restore_tenant(transactions: Transactions, tenant: str) -> None:
    """A job of this tenant ended, and that is committed: whether others may start, the next claim sees."""
    rows = await transactions.read("held_turns_of", tenant)
    await _restore(transactions, [(operation, tenant) for operation, tenant in rows])


async def review_turns(transactions: Transactions, terms: Terms, after: Turn | None, limit: int) -> HeldTurns:
    """Look at held turns, and let those come back in which a job may start."""
    operation, tenant = after or ("", "")
    rows = await transactions.read("held_turns", tenant, operation, limit)
    turns = [(operation, tenant) for operation, tenant in rows]
    restored = await _review(transactions, turns, terms)
    return HeldTurns(turns[-1] if len(turns) == limit else None, restored)


async def _review(transactions: Transactions, turns: Sequence[Turn], terms: Terms) -> int:
    starts = Starts(terms, {}, {})
    scopes = starts.uncounted(turns)
    if scopes:
        rows = await transactions.read("count_running_in", *columns(scopes, 2))
        starts.learn((tenant, operation, count) for tenant, operation, count in rows)
    return await _restore(transactions, [turn for turn in turns if not starts.is_held(turn)])


async def _restore(transactions: Transactions, turns: Sequence[Turn]) -> int:
    if not turns:
        return 0

    async def act(transaction: Transaction) -> int:
        await transaction.rows("commit_cheaply")
        restored = await transaction.run("restore_turns", *columns(turns, 2))
        if restored:
            transaction.hint(WakeUpKind.READY)
        return restored

    return await transactions.run(act)
