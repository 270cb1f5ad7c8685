"""Fault points that record, raise, call or kill, so that a test can break the product at a named hand-off."""

import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

from coatcheck.core.faults import FaultPoint

_PLACE = re.compile(r"([a-z0-9][a-z0-9-]*):([1-9][0-9]*)(:stop)?")


class FaultPoints:
    """A fault point that counts its hits by name and acts at those it was told to. Any thread may hit it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hits: Counter[str] = Counter()
        self._actions: dict[tuple[str, int], Callable[[], None]] = {}

    def __call__(self, name: str) -> None:
        with self._lock:
            self._hits[name] += 1
            action = self._actions.get((name, self._hits[name]))
        if action is not None:
            action()

    def count(self, name: str) -> int:
        """How often the point was passed."""
        with self._lock:
            return self._hits[name]

    @property
    def names(self) -> frozenset[str]:
        """The points passed so far."""
        with self._lock:
            return frozenset(self._hits)

    def call_at(self, name: str, hook: Callable[[], None], nth: int = 1) -> None:
        """Call `hook`, on the thread that passes, at the n-th pass counted from the beginning."""
        with self._lock:
            self._actions[name, nth] = hook

    def raise_at(self, name: str, error: Exception, nth: int = 1) -> None:
        """Raise `error` at the n-th pass."""

        def throw() -> NoReturn:
            raise error

        self.call_at(name, throw, nth)

    def kill_at(self, name: str, nth: int = 1) -> None:
        """Kill this process, as the kernel would, at the n-th pass."""
        self.call_at(name, _kill_self, nth)

    def stop_at(self, name: str, nth: int = 1) -> None:
        """Stop this process at the n-th pass, as SIGSTOP does; it goes on at a SIGCONT."""
        self.call_at(name, _stop_self, nth)


def crash_at(place: str) -> FaultPoint:
    """The fault point that kills its process at "name:n", the n-th pass of that name; at "name:n:stop" it stops it.

    Raises:
        ValueError: the place is not written like that.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise ValueError(f"{place!r} is not a fault point such as 'before-commit:1'")
    faults = FaultPoints()
    act = faults.stop_at if match[3] else faults.kill_at
    act(match[1], int(match[2]))
    return faults


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop_self() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
