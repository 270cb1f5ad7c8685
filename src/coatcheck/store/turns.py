"""Turns that are held: those in which no job may start, by a limit or by what was decided about their tenant.

A claim holds them, so that they stand in nobody's way. They come back when a job of their tenant ends, and at the
latest when somebody looks at them.
"""

from typing import Protocol

from coatcheck.core.starts import Turn
from coatcheck.core.terms import Terms
from coatcheck.store.records import HeldTurns


class TurnStore(Protocol):
    """For upkeep. Any verb may raise StoreUnavailable."""

    async def restore_turns(self, terms: Terms, after: Turn | None, limit: int) -> HeldTurns:
        """Let held turns in which jobs may start come back. Looks at those after `after`, by tenant and operation."""
        ...
