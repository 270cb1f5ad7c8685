"""Where processes are stopped for longer than a lease: at which point, in which role, and who goes on beside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from faults.kills import (
    API,
    NOT_API,
    NOT_RELAY,
    NOT_UPKEEP,
    NOT_WORKER,
    NOTHING,
    RELAY,
    UPKEEP,
    WORKER,
    do_nothing,
    hand_in_a_mixture,
    hand_in_and_wait,
    hand_in_many,
    leave_leases,
)
from faults.scene import Scene


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop: of the process with these roles, at the nth pass of the point, while others go on `beside` it.

    relief: who is started once it stands, unless it stands with the writer's turn, so that nobody else can write.
    """

    point: str
    victim: str
    act: Callable[[Scene], None]
    beside: str
    nth: int = 1
    before: Callable[[Scene], None] = do_nothing
    relief: str = NOTHING

    def __str__(self) -> str:
        return f"{self.point}-in-{self.victim.replace(',', '+')}"


STOPS: Sequence[Stop] = (
    Stop("claimed-before-start", WORKER, hand_in_many, NOT_WORKER, relief=WORKER),
    Stop("mid-handler", WORKER, hand_in_and_wait, NOT_WORKER, relief=WORKER),
    Stop("complete-after-commit", WORKER, hand_in_many, NOT_WORKER, nth=2, relief=WORKER),
    Stop("claim-before-commit", WORKER, hand_in_many, NOT_WORKER, relief=WORKER),
    Stop("result-stored-before-commit", WORKER, hand_in_many, NOT_WORKER, nth=2, relief=WORKER),
    Stop("after-commit-before-response", API, hand_in_many, NOT_API, nth=2),
    Stop("before-commit", API, hand_in_many, NOT_API, nth=2),
    Stop("reap-selected", UPKEEP, hand_in_many, NOT_UPKEEP, before=leave_leases, relief=UPKEEP),
    Stop("reap-updated", UPKEEP, hand_in_many, NOT_UPKEEP, before=leave_leases),
    Stop("outbox-sent-before-mark", RELAY, hand_in_a_mixture, NOT_RELAY, nth=2),
)
