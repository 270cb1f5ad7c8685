"""What runners ask of the store: answered sooner or later, tried again while the store is away."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from coatcheck.core.backoff import Backoff
from coatcheck.execution.escalation import Escalation
from coatcheck.execution.held import HeldAttempt, Phase
from coatcheck.observe.logs import get_logger
from coatcheck.store.errors import LeaseLost, StoreUnavailable

RETRY = Backoff(first_s=0.1, factor=2.0, max_s=2.0)

T = TypeVar("T")


class AttemptOver(Exception):
    """The attempt may not go on, so that there is nothing to answer."""


class Asks:
    """The asks that are being answered."""

    def __init__(self, escalation: Escalation) -> None:
        self._escalation = escalation
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = get_logger("worker")

    def begin(self, answering: Coroutine[None, None, None]) -> None:
        """Begin to answer."""
        task = asyncio.get_running_loop().create_task(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def give_up(self) -> None:
        """Stop trying."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def reach_store(
        self, attempt: HeldAttempt, act: Callable[[], Awaitable[T]], failed: str, **named: object
    ) -> T:
        """What the store answers. `failed`, `named`: what the log says where it cannot answer.

        Raises:
            AttemptOver: see there.
        """
        tries = 0
        while attempt.phase is Phase.RUNNING:
            try:
                return await act()
            except LeaseLost:
                self._escalation.lose(attempt)
                break
            except StoreUnavailable:
                tries += 1
                await asyncio.sleep(RETRY.ceiling_s(tries))
            except Exception:
                # Without an answer the handler would wait until its timeout.
                self._log.exception(failed, **named, **attempt.log_fields())
                self._escalation.lose(attempt)
                break
        raise AttemptOver
