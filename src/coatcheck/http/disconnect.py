"""Work that ends when the client leaves."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from coatcheck.http.exchange import ClientGone

T = TypeVar("T")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The outcome of `work`; it is cancelled when the client leaves first. The request's body must have been read.

    Raises:
        ClientGone: the client left first.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leaves(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait({working, leaving})
        _let_go(working)
        _let_go(leaving)


def _let_go(task: "asyncio.Task[Any]") -> None:
    """Take out of an ended task what it was cancelled with. The frames that this went through may hold the task, which
    would be a circle of references."""
    with contextlib.suppress(asyncio.CancelledError):
        task.exception()


async def _leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
