"""Fault points: named moments at every hand-off where a test may stop, fail or kill the process."""

from collections.abc import Callable
from typing import TypeAlias

FaultPoint: TypeAlias = Callable[[str], None]
"""Called with the point's name when the process passes it."""


def no_fault(name: str) -> None:
    """What every room calls in production: nothing happens."""
