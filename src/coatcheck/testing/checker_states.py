"""A job's states are legal, everybody sees the same, and at rest nothing is left over: I3, I10, I14."""

import itertools
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from coatcheck.testing.checker_evidence import Evidence, Rules, Sighting
from coatcheck.testing.checker_keeping import Found, instant_ms
from coatcheck.testing.history_client import STATUSES, JsonObject

FINAL = ("succeeded", "failed", "cancelled")

_FEWEST_STEPS: Mapping[tuple[str, str], int] = {
    ("queued", "queued"): 0,
    ("queued", "running"): 1,
    ("queued", "succeeded"): 2,
    ("queued", "failed"): 1,
    ("queued", "cancelled"): 1,
    ("running", "queued"): 1,
    ("running", "running"): 0,
    ("running", "succeeded"): 1,
    ("running", "failed"): 1,
    ("running", "cancelled"): 1,
    ("succeeded", "succeeded"): 0,
    ("failed", "failed"): 0,
    ("cancelled", "cancelled"): 0,
}
_SETTLED = ("status", "attempt", "started_at", "finished_at", "error", "result_type", "result_bytes", "expires_at")


def states_are_legal(evidence: Evidence, _rules: Rules) -> Found:
    """I3: states follow their order, a final one never changes, and no later answer shows an earlier version."""
    for job_id, sightings in evidence.sightings.items():
        for fault in (*_illegal_moves(evidence, job_id), *_unlike(sightings), *_backwards(sightings)):
            yield job_id, fault


def lists_agree_with_reads(evidence: Evidence, _rules: Rules) -> Found:
    """I10: lists show exactly the jobs that can be read, each as its own URL shows it."""
    ended_ms = max((call.wall_ms or 0 for call in evidence.final_reads.values()), default=0)
    listed = {job["id"]: job for job in evidence.final_lists.get("", ()) if not _goes_by(job, ended_ms)}
    read = {job_id: job for job_id, job in evidence.final_jobs.items() if not _goes_by(job, ended_ms)}
    for job_id in sorted(listed.keys() ^ read.keys()):
        yield job_id, "is listed and cannot be read" if job_id in listed else "can be read and is not listed"
    for job_id in sorted(listed.keys() & read.keys()):
        unlike = [name for name in read[job_id] if listed[job_id].get(name) != read[job_id][name]]
        if unlike:
            yield job_id, f"is listed with another {', '.join(unlike)} than it is read with"
    for status in STATUSES:
        there = {job["id"] for job in evidence.final_lists.get(status, ()) if not _goes_by(job, ended_ms)}
        wanted = {job_id for job_id, job in listed.items() if job["status"] == status}
        for job_id in sorted(there ^ wanted):
            yield job_id, f"the list of {status} jobs and the list of all disagree about it"


def nothing_is_left_at_rest(evidence: Evidence, _rules: Rules) -> Found:
    """I14: at rest no job is open, no attempt runs, and nothing that serves open jobs is left."""
    for job_id, job in evidence.final_jobs.items():
        if not job["done"]:
            yield job_id, f"is still {job['status']}"
        elif job["status"] not in FINAL:
            yield job_id, f"is done and {job['status']}"
    for job_id, attempts in evidence.final_attempts.items():
        for attempt in attempts:
            if attempt["finished_at"] is None:
                yield job_id, f"attempt {attempt['number']} has no end"
    for name, count in evidence.leftovers.items():
        if count:
            yield name, f"{count} left over"


def _illegal_moves(evidence: Evidence, job_id: str) -> Sequence[str]:
    """Faults in the statuses by version, as clients and events tell them."""
    told = {(seen.job["version"], seen.job["status"]) for seen in evidence.sightings[job_id]}
    told |= {(event["data"]["version"], event["data"]["status"]) for event in evidence.events_of(job_id)}
    faults = []
    for (version, status), (next_version, next_status) in itertools.pairwise(sorted(told)):
        steps = _FEWEST_STEPS.get((status, next_status))
        if version == next_version:
            faults.append(f"version {version} is {status} and {next_status}")
        elif steps is None or steps > next_version - version:
            faults.append(f"was {status} at version {version} and {next_status} at version {next_version}")
    return faults


def _unlike(sightings: Sequence[Sighting]) -> Sequence[str]:
    """Faults where one version was shown in two ways, or what was settled at the end changed."""
    by_version: dict[int, JsonObject] = {}
    settled: JsonObject | None = None
    faults = []
    for seen in sightings:
        # An inline result goes when the result expires, which is no change of the job.
        shown = {name: value for name, value in seen.job.items() if name != "result"}
        if by_version.setdefault(seen.job["version"], shown) != shown:
            faults.append(f"version {seen.job['version']} was shown in two ways")
        if seen.job["done"]:
            settled = settled or seen.job
            changed = [name for name in _SETTLED if settled.get(name) != seen.job.get(name)]
            if changed:
                faults.append(f"its end changed: {', '.join(changed)}")
    return faults


def _backwards(sightings: Sequence[Sighting]) -> Sequence[str]:
    """Faults where a call that began after another had ended was shown an older version."""
    by_end = sorted((seen.ended_us, seen.job["version"]) for seen in sightings)
    ends = [ended_us for ended_us, _ in by_end]
    newest = list(itertools.accumulate((version for _, version in by_end), max))
    faults = []
    for seen in sightings:
        before = bisect_left(ends, seen.began_us)
        if before and newest[before - 1] > seen.job["version"]:
            faults.append(f"version {seen.job['version']} was shown after version {newest[before - 1]}")
    return faults


def _goes_by(job: JsonObject, at_ms: int) -> bool:
    return job["expires_at"] is not None and instant_ms(job["expires_at"]) <= at_ms
