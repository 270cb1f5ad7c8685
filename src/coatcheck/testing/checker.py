"""One checker for every history: the invariants of the contract, each decided by a small function of its own.

Whatever made the history (kills, pauses, full disks, a simulation), the lines are the same and so is the judge. What
nobody knows, a call without an answer, is held against no one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from coatcheck.testing.checker_answers import answers_are_documented, one_key_is_one_job, tenants_are_apart
from coatcheck.testing.checker_evidence import Evidence, Rules
from coatcheck.testing.checker_keeping import (
    Found,
    acknowledged_jobs_exist,
    ids_are_conserved,
    jobs_stay_until_they_expire,
    refused_work_left_no_job,
)
from coatcheck.testing.checker_starts import (
    limits_hold,
    old_tokens_write_nothing,
    starts_are_bounded,
    work_goes_on_after_a_repair,
)
from coatcheck.testing.checker_states import lists_agree_with_reads, nothing_is_left_at_rest, states_are_legal
from coatcheck.testing.checker_telling import events_match_transitions

Invariant: TypeAlias = Callable[[Evidence, Rules], Found]

INVARIANTS: Mapping[str, Invariant] = MappingProxyType(
    {
        "I1": acknowledged_jobs_exist,
        "I2": ids_are_conserved,
        "I3": states_are_legal,
        "I4": starts_are_bounded,
        "I5": old_tokens_write_nothing,
        "I6": one_key_is_one_job,
        "I7": refused_work_left_no_job,
        "I8": jobs_stay_until_they_expire,
        "I9": events_match_transitions,
        "I10": lists_agree_with_reads,
        "I11": tenants_are_apart,
        "I12": limits_hold,
        "I13": work_goes_on_after_a_repair,
        "I14": nothing_is_left_at_rest,
        "I15": answers_are_documented,
    }
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise. `subject` is a job id, a key, a call or the name of what is left over."""

    invariant: str
    subject: str
    words: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.words}"


def check(evidence: Evidence, rules: Rules | None = None) -> Sequence[Violation]:
    """Every violation of every invariant; empty for a history that keeps all promises."""
    given = Rules() if rules is None else rules
    return [
        Violation(name, subject, words)
        for name, invariant in INVARIANTS.items()
        for subject, words in invariant(evidence, given)
    ]
