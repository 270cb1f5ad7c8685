"""Each invariant on its own: a clean history is doctored in one place, and exactly that is found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from checked_world import RULES, World, tell_story

from coatcheck.testing.checker import INVARIANTS, check
from coatcheck.testing.checker_evidence import Call, Evidence, Rules, Run
from coatcheck.testing.history import Mark
from coatcheck.testing.history_client import JsonObject, Verb

Doctor: TypeAlias = Callable[[Evidence], Evidence]

STRANGER = "job_0000000000000000000000000000"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """The evidence of a story in which nothing went wrong."""
    world = World(tmp_path_factory.mktemp("clean"))
    tell_story(world)
    yield world.come_to_rest()
    world.close()


def acknowledged_job_is_gone(evidence: Evidence) -> Evidence:
    job_id = _a_job(evidence)
    return _with_calls(evidence, lambda call: _is_final_read(call, job_id), _answered(404, "not-found"))


def job_of_nobody(evidence: Evidence) -> Evidence:
    job_id = _a_job(evidence)
    return _with_job(evidence, job_id, correlation_id="nobody")


def nobody_looked(evidence: Evidence) -> Evidence:
    return replace(evidence, runs=[*evidence.runs, Run(STRANGER, 1, 1)])


def version_with_two_statuses(evidence: Evidence) -> Evidence:
    return _with_last_read(evidence, status="failed")


def older_version_later(evidence: Evidence) -> Evidence:
    return _with_last_read(evidence, version=1, status="queued", done=False)


def attempt_started_twice(evidence: Evidence) -> Evidence:
    run = evidence.runs[0]
    return replace(evidence, runs=[*evidence.runs, replace(run, began_us=run.began_us + 1)])


def attempts_out_of_order(evidence: Evidence) -> Evidence:
    run = next(run for run in evidence.runs if run.attempt == 2)
    return replace(evidence, runs=[*evidence.runs, Run(run.job_id, 1, run.began_us + 1)])


def attempt_is_missing(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.verb == Verb.ATTEMPTS, lambda call: replace(call, attempts=()))


def end_by_an_earlier_attempt(evidence: Evidence) -> Evidence:
    def end_first(call: Call) -> Call:
        first, *rest = call.attempts
        return replace(call, attempts=[{**first, "outcome": "succeeded"}, *rest])

    return _with_calls(evidence, lambda call: call.who == "dump" and len(call.attempts) > 1, end_first)


def effect_with_two_values(evidence: Evidence) -> Evidence:
    effect = evidence.effects[0]
    return replace(evidence, effects=[*evidence.effects, replace(effect, value='"another"')])


def key_of_two_jobs(evidence: Evidence) -> Evidence:
    def other(call: Call) -> Call:
        return replace(call, jobs=[{**call.jobs[0], "id": STRANGER}])

    replays = [call for call in evidence.submits if call.key and call.mark is Mark.OK][1:]
    return _with_calls(evidence, lambda call: call in replays, other)


def replay_refused(evidence: Evidence) -> Evidence:
    accepted = next(call for call in evidence.submits if call.key)
    refused = replace(_answered(422, "idempotency-key-reused")(accepted), correlation_id="again")
    return replace(evidence, calls=[*evidence.calls, refused])


def refused_job_is_there(evidence: Evidence) -> Evidence:
    job_id = _a_job(evidence)
    return _with_calls(
        evidence, lambda call: evidence.acknowledged[job_id] is call, _answered(503, "store-unavailable")
    )


def tombstone_is_forgotten(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.http_status == 410, _answered(404, "not-found"))


def end_is_not_told(evidence: Evidence) -> Evidence:
    assert evidence.events is not None
    return replace(evidence, events=[event for event in evidence.events if not event["type"].endswith("failed")])


def event_is_told_in_two_ways(evidence: Evidence) -> Evidence:
    assert evidence.events is not None
    return replace(evidence, events=[*evidence.events, {**evidence.events[0], "time": "2000-01-01T00:00:00Z"}])


def events_out_of_order(evidence: Evidence) -> Evidence:
    assert evidence.events is not None
    return replace(evidence, events=evidence.events[::-1])


def list_without_a_job(evidence: Evidence) -> Evidence:
    job_id = _a_job(evidence)
    return _with_calls(
        evidence,
        lambda call: call.verb == Verb.LIST and call.who == "dump",
        lambda call: replace(call, jobs=[job for job in call.jobs if job["id"] != job_id]),
    )


def list_by_the_wrong_status(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.listed_status == "failed", lambda call: replace(call, jobs=()))


def job_shown_to_a_stranger(evidence: Evidence) -> Evidence:
    return _with_calls(
        evidence, lambda call: call.verb == Verb.READ and call.who == "client", lambda call: replace(call, tenant="b")
    )


def event_of_a_stranger(evidence: Evidence) -> Evidence:
    assert evidence.events is not None
    return replace(evidence, events=[{**evidence.events[0], "tenant": "b"}, *evidence.events[1:]])


def two_at_once(evidence: Evidence) -> Evidence:
    def stretch(call: Call) -> Call:
        stretched = [{**attempt, "started_at": "2026-01-01T00:00:00.000Z"} for attempt in call.attempts]
        return replace(call, attempts=stretched)

    return _with_calls(evidence, lambda call: call.verb == Verb.ATTEMPTS and call.who == "dump", stretch)


def lease_is_left(evidence: Evidence) -> Evidence:
    return replace(evidence, leftovers={"leases": 1})


def attempt_without_end(evidence: Evidence) -> Evidence:
    def open_last(call: Call) -> Call:
        return replace(call, attempts=[*call.attempts[:-1], {**call.attempts[-1], "finished_at": None}])

    return _with_calls(evidence, lambda call: call.who == "dump" and bool(call.attempts), open_last)


def answered_500(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.verb == Verb.CANCEL, _answered(500, "internal-error"))


def answered_503_without_a_word(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.verb == Verb.CANCEL, _answered(503, None))


def answered_201(evidence: Evidence) -> Evidence:
    return _with_calls(evidence, lambda call: call.verb == Verb.CANCEL, lambda call: replace(call, http_status=201))


DOCTORED: Mapping[Doctor, str] = {
    acknowledged_job_is_gone: "I1",
    job_of_nobody: "I2",
    nobody_looked: "I2",
    version_with_two_statuses: "I3",
    older_version_later: "I3",
    attempt_started_twice: "I4",
    attempts_out_of_order: "I4",
    attempt_is_missing: "I4",
    end_by_an_earlier_attempt: "I5",
    effect_with_two_values: "I5",
    key_of_two_jobs: "I6",
    replay_refused: "I6",
    refused_job_is_there: "I7",
    tombstone_is_forgotten: "I8",
    end_is_not_told: "I9",
    event_is_told_in_two_ways: "I9",
    events_out_of_order: "I9",
    list_without_a_job: "I10",
    list_by_the_wrong_status: "I10",
    job_shown_to_a_stranger: "I11",
    event_of_a_stranger: "I11",
    two_at_once: "I12",
    lease_is_left: "I14",
    attempt_without_end: "I14",
    answered_500: "I15",
    answered_503_without_a_word: "I15",
    answered_201: "I15",
}


@pytest.mark.parametrize("doctor", DOCTORED, ids=lambda doctor: doctor.__name__)
def test_what_is_doctored_is_found(clean: Evidence, doctor: Doctor) -> None:
    assert check(clean, RULES) == []
    violations = check(doctor(clean), RULES)
    assert DOCTORED[doctor] in {violation.invariant for violation in violations}, list(map(str, violations))


def test_late_work_is_found(clean: Evidence) -> None:
    found = {violation.invariant for violation in check(clean, replace(RULES, recovery_s_max=0.001))}
    assert found == {"I13"}


def test_every_invariant_has_a_planted_fault() -> None:
    assert {*DOCTORED.values(), "I13"} == INVARIANTS.keys()


@pytest.mark.parametrize("verb", [Verb.SUBMIT, Verb.READ, Verb.CANCEL, Verb.ERASE])
def test_a_call_without_an_answer_is_held_against_nobody(clean: Evidence, verb: Verb) -> None:
    def unanswered(call: Call) -> Call:
        nothing: dict[str, Any] = {"ended_us": None, "wall_ms": None, "http_status": None, "code": None, "jobs": ()}
        return replace(call, mark=Mark.UNKNOWN, **nothing)

    doctored = _with_calls(clean, lambda call: call.verb == verb and call.who == "client", unanswered)
    assert list(map(str, check(doctored, RULES))) == []


def test_a_refusal_that_may_hide_a_commit_is_held_against_nobody(clean: Evidence) -> None:
    doubtful = replace(RULES, has_doubtful_commits=True)
    assert list(map(str, check(refused_job_is_there(clean), doubtful))) == []


def test_an_event_may_be_told_again(clean: Evidence) -> None:
    assert clean.events is not None
    assert check(replace(clean, events=[*clean.events, *clean.events]), RULES) == []


def test_starts_lost_in_company_need_not_count(clean: Evidence) -> None:
    def lose_one(call: Call) -> Call:
        lost = {**call.attempts[0], "outcome": "worker_lost"}
        attempts = [{**lost, "number": number} for number in range(1, 4)]
        return replace(call, attempts=attempts, jobs=[{**job, "attempt": 3} for job in call.jobs])

    fails = _with_calls(clean, lambda call: call.who == "dump" and len(call.attempts) == 2, lose_one)
    words = [violation.words for violation in check(fails, RULES) if violation.invariant == "I4"]
    assert any("3 times, and 2 are allowed" in word for word in words)
    kind = replace(RULES, company_losses_max=1)
    words = [violation.words for violation in check(fails, kind) if violation.invariant == "I4"]
    assert not any("are allowed" in word for word in words)


def test_an_empty_history_breaks_nothing() -> None:
    assert check(Evidence((), (), (), None, {}, ()), Rules()) == []


def _a_job(evidence: Evidence) -> str:
    """A job that is there, acknowledged and listed."""
    return next(job_id for job_id in evidence.acknowledged if job_id in evidence.final_jobs)


def _is_final_read(call: Call, job_id: str) -> bool:
    return call.who == "dump" and call.verb == Verb.READ and call.job_id == job_id


def _answered(status: int, code: str | None) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        mark = Mark.UNKNOWN if status == 500 else Mark.FAIL
        return replace(call, mark=mark, http_status=status, code=code, jobs=())

    return change


def _with_calls(evidence: Evidence, is_meant: Callable[[Call], bool], change: Callable[[Call], Call]) -> Evidence:
    assert any(is_meant(call) for call in evidence.calls), "nothing is doctored"
    return replace(evidence, calls=[change(call) if is_meant(call) else call for call in evidence.calls])


def _with_job(evidence: Evidence, job_id: str, **changes: Any) -> Evidence:
    def changed(job: JsonObject) -> JsonObject:
        return {**job, **changes} if job["id"] == job_id else job

    calls = [replace(call, jobs=[changed(job) for job in call.jobs]) for call in evidence.calls]
    return replace(evidence, calls=calls)


def _with_last_read(evidence: Evidence, **changes: Any) -> Evidence:
    """The dump's read of a job that succeeded, changed."""
    job_id = next(job_id for job_id, job in evidence.final_jobs.items() if job["status"] == "succeeded")
    return _with_calls(
        evidence,
        lambda call: _is_final_read(call, job_id),
        lambda call: replace(call, jobs=[{**call.jobs[0], **changes}]),
    )
