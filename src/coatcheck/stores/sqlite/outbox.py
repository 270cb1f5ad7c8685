"""Handing the outbox to one relay at a time, in the order of the commits."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from coatcheck.core.events import EventType, OutboxEntry
from coatcheck.stores.sqlite.facet import Facet


class RelayTurn:
    """The right to relay: a file lock that the kernel takes back from a process that dies."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(f"{path}-relay", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def is_held(self) -> bool:
        """Take the turn if it is free; whether this process has it now."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Give the turn to another process."""
        os.close(self._fd)


class Outbox(Facet):
    """The engine's OutboxStore."""

    _relay_turn: RelayTurn

    async def read_outbox(self, limit: int) -> Sequence[OutboxEntry]:
        if not self._relay_turn.is_held():
            return ()
        rows = await self._readers.aside(lambda snapshot: snapshot.rows("read_outbox", limit=limit))
        return [OutboxEntry(row[0], EventType(row[1]), *row[2:]) for row in rows]

    async def remove_relayed(self, seqs: Sequence[int]) -> None:
        if seqs:
            rows = [(seq,) for seq in seqs]
            await self._writer.run(lambda transaction: transaction.run_many("delete_outbox", rows))
