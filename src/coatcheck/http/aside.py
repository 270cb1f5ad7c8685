"""Work that would hold every other request up is done aside: in a thread, and one piece of it at a time.

All threads share one interpreter: two at work would take twice as much from everybody else. Nor is garbage collected
meanwhile, since going again and again through a large body's values costs more than reading them.
"""

import asyncio
import gc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Aside:
    """Takes in turn whatever is too much for the event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """The outcome of `work`, once it had its turn."""
        async with self._turn:
            return await asyncio.to_thread(_without_collecting, work)


def _without_collecting(work: Callable[[], T]) -> T:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if was_enabled:
            gc.enable()
