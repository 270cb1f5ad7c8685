"""Nothing accepted is lost, nothing refused exists, and nothing goes before its time: I1, I2, I7, I8."""

from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from typing import TypeAlias

from coatcheck.testing.checker_evidence import Call, Evidence, Rules
from coatcheck.testing.history import Mark
from coatcheck.testing.history_client import JsonObject, Verb

Found: TypeAlias = Iterator[tuple[str, str]]
"""Pairs of what it is about (a job id, a key, a call) and what is wrong."""

GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


def acknowledged_jobs_exist(evidence: Evidence, rules: Rules) -> Found:
    """I1: every acknowledged id exists at the end."""
    for job_id, call in evidence.acknowledged.items():
        fault = _missing(evidence, rules, job_id)
        if fault is not None:
            yield job_id, f"acknowledged by {call}, and at the end {fault}"


def ids_are_conserved(evidence: Evidence, rules: Rules) -> Found:
    """I2: ids = final + live + tombstones; each job is the work of one call, and each call made one job at most."""
    for job_id in sorted(_known_ids(evidence) - evidence.acknowledged.keys()):
        fault = _missing(evidence, rules, job_id)
        if fault is not None:
            yield job_id, f"was seen at work, and at the end {fault}"
    asked_for = {call.correlation_id for call in evidence.submits}
    for correlation_id, job_ids in evidence.jobs_by_correlation.items():
        if correlation_id not in asked_for:
            yield job_ids[0], f"is the job of {correlation_id}, which nobody sent"
        if len(job_ids) > 1:
            yield correlation_id, f"one submission made {len(job_ids)} jobs: {', '.join(job_ids)}"


def refused_work_left_no_job(evidence: Evidence, rules: Rules) -> Found:
    """I7: a definite refusal left no job."""
    for call in evidence.submits:
        is_doubtful = rules.has_doubtful_commits and call.code == "store-unavailable"
        if call.mark is Mark.FAIL and not is_doubtful:
            for job_id in evidence.jobs_by_correlation.get(call.correlation_id, ()):
                yield job_id, f"exists, although {call} was refused with {call.code}"


def jobs_stay_until_they_expire(evidence: Evidence, rules: Rules) -> Found:
    """I8: once shown to somebody, a job answers until it expires or is erased, and then with its tombstone."""
    for call in evidence.calls:
        sightings = evidence.sightings.get(call.job_id or "", ())
        shown_us = min((seen.ended_us for seen in sightings), default=None)
        if shown_us is None or call.began_us < shown_us or call.http_status not in GONE:
            continue
        if call.code in ("not-found", "job-expired") and not _is_gone_rightly(evidence, rules, call):
            yield call.job_id or "", f"{call} was answered {call.code} before the job's time was up"
    for job in evidence.final_jobs.values():
        kept_ms = round(rules.kept_of(job["operation"]).job_s * 1000)
        if job["done"] and instant_ms(job["expires_at"]) < instant_ms(job["finished_at"]) + kept_ms:
            yield job["id"], f"expires at {job['expires_at']}, earlier than its operation promises"


def instant_ms(text: str) -> int:
    """An RFC 3339 instant in ms since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def goes_at_ms(evidence: Evidence, rules: Rules, job_id: str) -> int | None:
    """The earliest moment at which the job may expire by what is known of it. None: nobody ever saw it."""
    sightings = evidence.sightings.get(job_id, ())
    told = [seen.job["expires_at"] for seen in sightings if seen.job["expires_at"] is not None]
    if told:
        return min(instant_ms(at) for at in told)
    if not sightings:
        return _goes_by_events_ms(evidence, rules, job_id)
    job: JsonObject = sightings[0].job
    return instant_ms(job["created_at"]) + round(rules.kept_of(job["operation"]).job_s * 1000)


def _goes_by_events_ms(evidence: Evidence, rules: Rules, job_id: str) -> int | None:
    for event in evidence.events_of(job_id):
        return instant_ms(event["time"]) + round(rules.kept_of(event["operation"]).job_s * 1000)
    return None


def _known_ids(evidence: Evidence) -> set[str]:
    by_event = {event["subject"] for event in evidence.events or ()}
    return by_event | {run.job_id for run in evidence.runs} | evidence.sightings.keys()


def _missing(evidence: Evidence, rules: Rules, job_id: str) -> str | None:
    """What is wrong with how the job is found at the end, or None."""
    call = evidence.final_reads.get(job_id)
    if call is None:
        return "nobody looked for it"
    if call.mark is Mark.OK:
        return None if call.jobs[0]["id"] == job_id else f"another job is answered for it: {call.jobs[0]['id']}"
    if call.http_status in GONE and _is_gone_rightly(evidence, rules, call):
        return None
    return f"it is answered {call.http_status} {call.code}"


def _is_gone_rightly(evidence: Evidence, rules: Rules, call: Call) -> bool:
    """Whether this answer that the job is gone came after its erasure or expiry, and its tombstone's end for a 404."""
    if call.job_id is None or call.ended_us is None or call.wall_ms is None:
        return False
    has_tombstone = call.http_status == HTTPStatus.GONE
    if has_tombstone and any(
        other.verb == Verb.ERASE and other.job_id == call.job_id and other.began_us < call.ended_us
        for other in evidence.calls
    ):
        return True
    goes_ms = goes_at_ms(evidence, rules, call.job_id)
    if goes_ms is None:
        return False
    operation = _operation_of(evidence, call.job_id)
    kept_ms = 0 if has_tombstone else round(rules.kept_of(operation).tombstone_s * 1000)
    return call.wall_ms >= goes_ms + kept_ms


def _operation_of(evidence: Evidence, job_id: str) -> str:
    sightings = evidence.sightings.get(job_id, ())
    if sightings:
        return str(sightings[0].job["operation"])
    return next((str(event["operation"]) for event in evidence.events_of(job_id)), "")
