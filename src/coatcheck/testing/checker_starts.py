"""Starts are bounded, fenced and limited, and come soon after a repair: I4, I5, I12, I13."""

import itertools
from collections import Counter
from collections.abc import Collection, Sequence

from coatcheck.testing.checker_evidence import EffectCall, Evidence, Rules, Run
from coatcheck.testing.checker_keeping import Found, instant_ms
from coatcheck.testing.history import Mark
from coatcheck.testing.history_client import JsonObject

_CLOCK_SLACK_MS = 1_000
"""Moments of one job's end and another's start are read before they are committed, and may cross."""

_ENDINGS = ("succeeded", "cancelled")


def starts_are_bounded(evidence: Evidence, rules: Rules) -> Found:
    """I4: counted starts ≤ max_attempts; attempts are numbered one by one, and each is started once."""
    for job_id, job in evidence.final_jobs.items():
        attempts = evidence.final_attempts.get(job_id, ())
        numbers = [attempt["number"] for attempt in attempts]
        if numbers != list(range(1, job["attempt"] + 1)):
            yield job_id, f"has started {job['attempt']} times, and its attempts are {numbers}"
        counted = sum(attempt["outcome"] != "released" for attempt in attempts)
        if counted > job["max_attempts"] + rules.company_losses_max:
            yield job_id, f"was started {counted} times, and {job['max_attempts']} are allowed"
    for job_id in sorted({run.job_id for run in evidence.runs}):
        attempts = evidence.final_attempts.get(job_id, ())
        lost = {attempt["number"] for attempt in attempts if attempt["outcome"] == "worker_lost"}
        faults = _misnumbered(evidence.runs_of(job_id), evidence.final_jobs.get(job_id), lost)
        yield from ((job_id, fault) for fault in faults)


def old_tokens_write_nothing(evidence: Evidence, _rules: Rules) -> Found:
    """I5: only the latest attempt ends its job or records an effect; an effect is recorded once in a chain."""
    for job_id, attempts in evidence.final_attempts.items():
        for attempt in attempts[:-1]:
            if attempt["outcome"] in _ENDINGS:
                yield job_id, f"attempt {attempt['number']} {attempt['outcome']}, and another was started after it"
    for job_id, job in evidence.final_jobs.items():
        runs = evidence.runs_of(job_id)
        ended_by = [run.attempt for run in runs if run.mark is Mark.OK]
        if job["status"] == "succeeded" and runs and job["attempt"] not in ended_by:
            yield job_id, f"succeeded with attempt {job['attempt']}, and those that returned are {ended_by}"
    for effect in evidence.effects:
        later = [run for run in evidence.runs_of(effect.job_id) if run.attempt > effect.attempt]
        if any(run.began_us < effect.began_us for run in later):
            yield effect.job_id, f"attempt {effect.attempt} got effect {effect.name!r} after a later one had started"
    yield from _doubled_effects(evidence)


def limits_hold(evidence: Evidence, rules: Rules) -> Found:
    """I12: no more attempts of an operation run at once than it allows, in any window."""
    for operation, allowed in rules.concurrency_max.items():
        moves = sorted(_moves(evidence, operation))
        running = 0
        for _, change, job_id in moves:
            running += change
            if running > allowed:
                yield job_id, f"{running} attempts of {operation} ran at once, and {allowed} may"


def work_goes_on_after_a_repair(evidence: Evidence, rules: Rules) -> Found:
    """I13: what waited for a repair is done within the bound after it."""
    if rules.recovery_s_max is None:
        return
    for job_id, job in evidence.final_jobs.items():
        if job["finished_at"] is None:
            continue
        finished_ms = instant_ms(job["finished_at"])
        healed_ms = max((at for at in evidence.healed_ms if at <= finished_ms), default=None)
        if healed_ms is None:
            continue
        could_ms = max(healed_ms, instant_ms(job["available_at"]), instant_ms(job["created_at"]))
        late_s = (finished_ms - could_ms) / 1000
        if late_s > rules.recovery_s_max:
            yield job_id, f"was done {late_s:.1f} s after it could go on, and {rules.recovery_s_max:g} s are allowed"


def _misnumbered(runs: Sequence[Run], job: JsonObject | None, lost: Collection[int]) -> Sequence[str]:
    """Starts out of order. A process may be stopped between its last look at a lease and the start: an attempt that was
    lost may come late."""
    in_time = [run.attempt for run in sorted(runs, key=lambda run: run.began_us)]
    faults = [f"attempt {attempt} was started twice" for attempt, starts in Counter(in_time).items() if starts > 1]
    for earlier, later in itertools.pairwise(in_time):
        if earlier > later and later not in lost:
            faults.append(f"attempt {later} was started after attempt {earlier}")
    last = max(in_time, default=0)
    if job is not None and last > job["attempt"]:
        faults.append(f"attempt {last} was started, and the job knows {job['attempt']}")
    return faults


def _doubled_effects(evidence: Evidence) -> Found:
    first: dict[tuple[str, str], EffectCall] = {}
    for effect in evidence.effects:
        chain = _chain_of(evidence, effect.job_id)
        recorded = first.setdefault((chain, effect.name), effect)
        if recorded.value != effect.value:
            yield chain, f"effect {effect.name!r} was recorded as {recorded.value} and as {effect.value}"


def _chain_of(evidence: Evidence, job_id: str) -> str:
    """The first job of the chain, as far back as it is still there."""
    job = evidence.final_jobs.get(job_id)
    while job is not None and job["redrive_of"] is not None:
        job_id = job["redrive_of"]
        job = evidence.final_jobs.get(job_id)
    return job_id


def _moves(evidence: Evidence, operation: str) -> list[tuple[int, int, str]]:
    """The starts (+1) and ends (-1) of an operation's attempts in ms; at one moment the ends come first."""
    moves = []
    for job_id, attempts in evidence.final_attempts.items():
        job = evidence.final_jobs.get(job_id)
        if job is None or job["operation"] != operation:
            continue
        for attempt in attempts:
            if attempt["finished_at"] is None:
                continue
            began_ms, ended_ms = instant_ms(attempt["started_at"]), instant_ms(attempt["finished_at"])
            if began_ms < ended_ms - _CLOCK_SLACK_MS:
                moves += [(began_ms, 1, job_id), (ended_ms - _CLOCK_SLACK_MS, -1, job_id)]
    return moves
