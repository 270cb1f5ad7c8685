"""Handing the outbox to one relay at a time, in the order of the entries."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from coatcheck.core.events import EventType, OutboxEntry
from coatcheck.store.clock import Clock
from coatcheck.stores.postgres.facet import Facet
from coatcheck.stores.postgres.transaction import Transactions

KEPT_PART_OF_TURN = 5


class RelayTurn:
    """The right to relay, by the database's clock: a process that dies leaves it to another after a lease time."""

    def __init__(self, transactions: Transactions, clock: Clock, turn_s: float) -> None:
        self._transactions = transactions
        self._clock = clock
        self._turn_s = turn_s
        self._holder = secrets.token_hex(8)
        self._kept_at_s: float | None = None

    async def is_held(self) -> bool:
        """Take the turn if it is free, keep it now and then; whether this process has it now."""
        now_s = self._clock.monotonic_s()
        if self._kept_at_s is not None and now_s - self._kept_at_s < self._turn_s / KEPT_PART_OF_TURN:
            return True
        rows = await self._transactions.run(
            lambda transaction: transaction.rows("hold_relay_turn", self._holder, timedelta(seconds=self._turn_s)), True
        )
        self._kept_at_s = now_s if rows else None
        return bool(rows)

    async def leave(self) -> None:
        """Give the turn to another process."""
        if self._kept_at_s is not None:
            self._kept_at_s = None
            await self._transactions.run(lambda transaction: transaction.run("leave_relay_turn", self._holder), True)


class Outbox(Facet):
    """The engine's OutboxStore."""

    _relay_turn: RelayTurn

    async def read_outbox(self, limit: int) -> Sequence[OutboxEntry]:
        if not await self._relay_turn.is_held():
            return ()
        rows = await self._transactions.read("read_outbox", limit)
        return [OutboxEntry(row[0], EventType(row[1]), *row[2:]) for row in rows]

    async def remove_relayed(self, seqs: Sequence[int]) -> None:
        if seqs:
            await self._transactions.run(lambda transaction: transaction.run("delete_outbox", seqs), True)
