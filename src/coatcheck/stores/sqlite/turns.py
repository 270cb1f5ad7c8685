"""The turns as a claim goes through them: those in which no job may start are held, and come back when one may."""

from collections.abc import Sequence

import msgspec

from coatcheck.core import limits
from coatcheck.core.starts import Starts, Turn
from coatcheck.core.terms import Terms
from coatcheck.store.records import HeldTurns, WakeUpKind
from coatcheck.stores.sqlite.rows import Row
from coatcheck.stores.sqlite.transaction import Transaction

_LOOKS_MAX = 10
_COUNTS: msgspec.json.Decoder[list[tuple[str, str, int]]] = msgspec.json.Decoder(list[tuple[str, str, int]])
_TURNS: msgspec.json.Decoder[list[Turn]] = msgspec.json.Decoder(list[Turn])


def next_turns(transaction: Transaction, operation: str, starts: Starts, limit: int) -> list[Row]:
    """The tenants of the next turns, with their levels and how many jobs wait; enough for `limit` starts.

    However many stand before them in vain, they are held here and never looked at again by a claim.
    """
    full = starts.full_here(operation)
    for _ in range(_LOOKS_MAX):
        rows = transaction.rows("next_turns", operation=operation, limit=limit + full)
        if starts.is_free or not _withhold(transaction, starts, [(operation, row[0]) for row in rows]):
            return rows
        limit = min(2 * limit, limits.CLAIM_BATCH_MAX)
    # So many at once: the next claim goes on.
    transaction.hint(WakeUpKind.READY)
    return []


def restore_tenants(transaction: Transaction, tenants: Sequence[str]) -> None:
    """Jobs of these tenants ended: whether others may start, the next claim sees."""
    turns = transaction.read_many("held_turns_of", [(tenant,) for tenant in tenants], _TURNS)
    _restore(transaction, turns)


def review(transaction: Transaction, terms: Terms, after: Turn | None, limit: int) -> HeldTurns:
    """Look at held turns, and let those come back in which a job may start."""
    operation, tenant = after or ("", "")
    rows = transaction.rows("held_turns", operation=operation, tenant=tenant, limit=limit)
    turns = [(operation, tenant) for operation, tenant in rows]
    starts = Starts(terms, {}, {})
    _count(transaction, starts, turns)
    back = [turn for turn in turns if not starts.is_held(turn)]
    _restore(transaction, back)
    return HeldTurns(turns[-1] if len(turns) == limit else None, len(back))


def _withhold(transaction: Transaction, starts: Starts, turns: Sequence[Turn]) -> bool:
    """Hold those of the turns in which no job may start; whether there were any."""
    _count(transaction, starts, turns)
    held = [turn for turn in turns if starts.is_held(turn)]
    transaction.run_many("withhold_turns", held)
    for operation in {operation for operation, _ in held}:
        transaction.run("forget_turns", operation=operation)
    return bool(held)


def _restore(transaction: Transaction, turns: Sequence[Turn]) -> None:
    if transaction.run_many("restore_turns", turns):
        transaction.hint(WakeUpKind.READY)


def _count(transaction: Transaction, starts: Starts, turns: Sequence[Turn]) -> None:
    scopes = starts.uncounted(turns)
    if scopes:
        starts.learn(transaction.read_many("count_running_in", scopes, _COUNTS))
