"""What a benchmark says: one row for each thing measured, beside what it is compared with and what was promised."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.load import Load

FOREIGN_CORES_MAX = 0.25
PROMISED_SHARE_IN_DEPTH = 0.80


@dataclass(frozen=True)
class Verdict:
    """What was promised, in words, and whether it is kept."""

    target: str
    is_met: bool


@dataclass(frozen=True)
class Row:
    """One line of the table. `ratio` is `value` ÷ `beside` (or the other way where that reads better)."""

    section: str
    what: str
    value: float
    unit: str
    values: Sequence[float] = ()
    beside: float | None = None
    beside_name: str = ""
    ratio: float | None = None
    verdict: Verdict | None = None
    foreign_cores: float = 0.0
    extra: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def is_disturbed(self) -> bool:
        """Whether others used so much of the machine that the figure should be taken again."""
        return self.foreign_cores > FOREIGN_CORES_MAX


@dataclass(frozen=True)
class Plan:
    """How long and how often. `tell` hears what is being done."""

    seconds: float
    rounds: int
    depth: int
    peers: str
    tell: Callable[[str], None]


def median_of(loads: Sequence[Load], read: Callable[[Load], float]) -> float:
    return median(read(load) for load in loads)


def foreign(*loads: Sequence[Load]) -> float:
    """The median of what others used."""
    return median(load.foreign_cores for group in loads for load in group)


def paired_ratio(ours: Sequence[Load], others: Sequence[Load]) -> float:
    """The median of the ratios of neighbouring runs, so that a slow minute of the machine hits both sides."""
    return median(a.rate / b.rate for a, b in zip(ours, others, strict=True))


def at_least(target: float, value: float, words: str) -> Verdict:
    """Target and verdict of something that should be large."""
    return Verdict(f"≥ {words}", value >= target)


def at_most(target: float, value: float, words: str) -> Verdict:
    """Target and verdict of something that should be small."""
    return Verdict(f"≤ {words}", value <= target)


def depth_accept_row(section: str, full: Sequence[Load], empty: Sequence[Load], beside_name: str) -> Row:
    """How much slower accepting is in a store that is full of jobs than in an empty one."""
    ratio = paired_ratio(full, empty)
    return Row(
        section,
        "accept, everything on",
        median_of(full, lambda load: load.rate),
        "/s",
        [load.rate for load in full],
        beside=median_of(empty, lambda load: load.rate),
        beside_name=beside_name,
        ratio=ratio,
        verdict=at_least(PROMISED_SHARE_IN_DEPTH, ratio, f"{PROMISED_SHARE_IN_DEPTH:.0%}"),
        foreign_cores=foreign(full, empty),
        extra={"p99_ms": median_of(full, lambda load: load.p99_ms)},
    )
