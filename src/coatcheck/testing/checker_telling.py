"""Events tell exactly what happened to jobs, at least once and in order: I9."""

from collections.abc import Sequence

from coatcheck.testing.checker_evidence import Evidence, Rules
from coatcheck.testing.checker_keeping import Found
from coatcheck.testing.history_client import JsonObject

_PREFIX = "coatcheck.job."
_TERMINAL = ("succeeded", "failed", "cancelled")


def events_match_transitions(evidence: Evidence, _rules: Rules) -> Found:
    """I9: each change of status has one event by id, told again only as it was, and in its job's order."""
    if evidence.events is None:
        return
    told: dict[str, list[JsonObject]] = {}
    by_id: dict[str, JsonObject] = {}
    for event in evidence.events:
        first = by_id.get(event["id"])
        if first is None:
            by_id[event["id"]] = event
            told.setdefault(event["subject"], []).append(event)
        elif first != event:
            yield event["subject"], f"event {event['id']} was told in two ways"
    for job_id, read in evidence.final_reads.items():
        job = evidence.final_jobs.get(job_id)
        has_been = job is not None or read.code == "job-expired"
        if has_been:
            yield from ((job_id, fault) for fault in _faults(told.get(job_id, ()), job))


def _faults(events: Sequence[JsonObject], job: JsonObject | None) -> Sequence[str]:
    """What is wrong with one job's events, each once. `job` is None where only its tombstone is left."""
    kinds = [str(event["type"]).removeprefix(_PREFIX) for event in events]
    faults = []
    versions = [event["data"]["version"] for event in events]
    if versions != sorted(set(versions)):
        faults.append(f"its events came in the order of versions {versions}")
    if kinds.count("accepted") != 1 or kinds[0] != "accepted":
        faults.append(f"its acceptance was not told first and once: {kinds}")
    ends = [kind for kind in kinds if kind in _TERMINAL]
    wanted = ["a final status"] if job is None else [job["status"]] if job["done"] else []
    if len(ends) != len(wanted) or (job is not None and ends != wanted):
        faults.append(f"it ended {wanted}, and {ends} was told")
    started = [event["data"]["attempt"] for event, kind in zip(events, kinds, strict=True) if kind == "started"]
    starts = len(started) if job is None else job["attempt"]
    if started != list(range(1, starts + 1)):
        faults.append(f"it started {starts} times, and starts {started} were told")
    if any(kind != event["data"]["status"] for event, kind in zip(events, kinds, strict=True) if kind in _TERMINAL):
        faults.append("an event's type and data disagree")
    return faults
