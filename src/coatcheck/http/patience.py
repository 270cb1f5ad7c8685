"""Waiting for clients: a time in which this process stood still is not held against them.

A process may be stopped, or its machine be asleep. When it goes on its timers are looked at before its sockets, and
what a client sent long ago would come too late.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coatcheck.core import limits


def stood_still(loop: asyncio.AbstractEventLoop, due_s: float) -> bool:
    """Whether a timer that was due at this instant of the loop comes so late that nothing was read meanwhile."""
    return loop.time() - due_s > limits.STANDSTILL_S


@asynccontextmanager
async def patient(timeout_s: float) -> AsyncIterator[asyncio.Timeout]:
    """As `asyncio.timeout`; after a standstill, what came meanwhile is read first.

    Raises:
        TimeoutError: the block took longer.
    """
    loop = asyncio.get_running_loop()
    due_s = loop.time() + timeout_s
    async with asyncio.timeout(None) as timeout:

        def end() -> None:
            grace_s = limits.STANDSTILL_GRACE_S if stood_still(loop, due_s) else 0.0
            timeout.reschedule(loop.time() + grace_s)

        timer = loop.call_at(due_s, end)
        try:
            yield timeout
        finally:
            timer.cancel()
