"""Turns that are held: none stays so for long although a job may start in it, whatever was missed."""

from collections.abc import Callable

from coatcheck.core.starts import Turn
from coatcheck.core.terms import Terms
from coatcheck.observe.logs import get_logger
from coatcheck.store.turns import TurnStore

_log = get_logger(__name__)


class TurnSweep:
    """Goes through the held turns, a batch each time, under the terms of that moment."""

    name = "turns"

    def __init__(self, store: TurnStore, terms: Callable[[], Terms]) -> None:
        self._store = store
        self._terms = terms
        self._after: Turn | None = None

    async def run_once(self, limit: int) -> int:
        """Look at up to `limit` turns. Returns `limit` if there are more, else how many came back."""
        held = await self._store.restore_turns(self._terms(), self._after, limit)
        self._after = held.last
        if held.restored:
            _log.debug("turns_restored", count=held.restored)
        return held.restored if held.last is None else limit
