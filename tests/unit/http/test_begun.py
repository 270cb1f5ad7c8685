"""An awaitable's first step by hand: the rest must go on as if nothing had happened."""

import asyncio

import pytest

from coatcheck.http.begun import Begun


async def test_what_has_nothing_to_wait_for_is_done() -> None:
    async def at_once() -> int:
        return 7

    begun = Begun(at_once())
    assert begun.is_done
    assert begun.result == 7


async def test_an_error_of_the_first_step_is_raised_at_once() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        Begun(fail())


async def test_what_waits_goes_on_when_awaited() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()

    async def two() -> int:
        return await queue.get() + await queue.get()

    begun = Begun(two())
    assert not begun.is_done
    asyncio.get_running_loop().call_soon(queue.put_nowait, 1)
    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(queue.put_nowait, 2))
    assert await begun == 3


async def test_an_end_of_time_reaches_what_is_waited_for() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    begun = Begun(forever())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await begun
    assert ended == ["cleaned up"]
