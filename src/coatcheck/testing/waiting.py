"""Waiting for something to become true: the one place where a test may sleep."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

from coatcheck.store.clock import SystemClock

_CHECK_INTERVAL_S = 0.01
_CLOCK = SystemClock()


def wait_until(predicate: Callable[[], bool], message: str, timeout_s: float = 10.0) -> None:
    """Return as soon as the predicate holds.

    Raises:
        TimeoutError: it did not within `timeout_s` seconds of real time; the message says what was awaited.
    """
    ends_at_s = _CLOCK.monotonic_s() + timeout_s
    never = threading.Event()
    while not predicate():
        if _CLOCK.monotonic_s() >= ends_at_s:
            raise TimeoutError(f"not within {timeout_s} s: {message}")
        never.wait(_CHECK_INTERVAL_S)


async def wait_until_async(
    predicate: Callable[[], bool | Awaitable[bool]], message: str, timeout_s: float = 10.0
) -> None:
    """`wait_until` for the event loop; the predicate may be `async def`.

    Raises:
        TimeoutError: as `wait_until`.
    """
    ends_at_s = _CLOCK.monotonic_s() + timeout_s
    while not await _holds(predicate):
        if _CLOCK.monotonic_s() >= ends_at_s:
            raise TimeoutError(f"not within {timeout_s} s: {message}")
        await asyncio.sleep(_CHECK_INTERVAL_S)


async def _holds(predicate: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = predicate()
    return answer if isinstance(answer, bool) else await answer
