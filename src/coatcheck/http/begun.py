"""Taking an awaitable's first step by hand, to know whether it has anything to wait for.

Nearly every request's body is there before it is asked for, and a timer for it costs more than reading it.
"""

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """An awaitable that was run up to its first wait. Where `is_done` it has its `result`; else await it, once."""

    __slots__ = ("_steps", "_waiting_for", "is_done", "result")

    result: T

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps: Generator[Any, None, T] = awaitable.__await__()
        self.is_done = False
        try:
            self._waiting_for = next(self._steps)
        except StopIteration as end:
            self.is_done = True
            self.result = end.value

    def __await__(self) -> Generator[Any, None, T]:
        try:
            yield self._waiting_for
        except BaseException as error:
            # A cancellation, most likely: it belongs to what is being waited for.
            self._steps.throw(error)
            raise
        return (yield from self._steps)
