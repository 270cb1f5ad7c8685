"""Claims of the reference model: which jobs a claim must hand out, in which order, and which it must end instead."""

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.core.job import InstantMs
from coatcheck.store.records import ClaimRequest
from coatcheck.testing.model import Model
from coatcheck.testing.model_moves import lateness
from coatcheck.testing.model_state import ModelJob, Place


@dataclass(frozen=True, slots=True)
class Step:
    """One turn served: the job is leased, or ends because it came too late."""

    job: ModelJob
    is_late: bool


def plan_claim(model: Model, request: ClaimRequest, first: str, now: InstantMs) -> Sequence[Step]:
    """The turns a claim serves when it goes round the operations from `first`, one job of each, fairly.

    Due jobs must have been promoted. Which operation a round begins with is the store's own choice.
    """
    names = sorted(request.slots_by_operation)
    start = names.index(first)
    lines = [_Line(model, request, name, now) for name in names[start:] + names[:start]]
    steps: list[Step] = []
    claimed = 0
    while any(line.has_more for line in lines):
        for line in lines:
            if claimed >= request.slots:
                return steps
            step = line.serve()
            if step is not None:
                steps.append(step)
                claimed += not step.is_late
    return steps


class _Line:
    """One operation's queue as a claim goes through it, without changing the model."""

    def __init__(self, model: Model, request: ClaimRequest, operation: str, now: InstantMs) -> None:
        state, self._now = model.state, now
        self._state = state
        self._turns = state.turns_of(operation).copy()
        self._ready = sorted(
            state.in_place(Place.READY, operation), key=lambda job: (job.record.priority, job.record.id)
        )
        largest = state.policies[operation].concurrency_max
        free = request.slots if largest is None else largest - len(state.in_place(Place.RUNNING, operation))
        self._slots = max(0, min(free, request.slots_by_operation[operation]))

    @property
    def has_more(self) -> bool:
        return bool(self._ready) and self._slots > 0

    def serve(self) -> Step | None:
        """The next turn, or None where nobody waits or nothing more may run."""
        tenant = self._turns.next()
        if tenant is None or self._slots == 0:
            return None
        job = next(job for job in self._ready if job.record.tenant == tenant)
        self._ready.remove(job)
        self._turns.serve(tenant)
        is_late = lateness(self._state, job, self._now) is not None
        self._slots -= not is_late
        return Step(job, is_late)
