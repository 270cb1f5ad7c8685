"""What one part of the torture brought to light."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Figures: TypeAlias = dict[str, float | int | str]


@dataclass
class Outcome:
    """The figures of a part in the order they are shown, and every broken promise in words."""

    figures: Figures = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """One run of a part: how much of it, from which seed, in which empty folder; `advance` tells of progress."""

    amount: int
    seed: int
    folder: Path
    advance: Callable[[int], None]


Run: TypeAlias = Callable[[Task], Outcome]
