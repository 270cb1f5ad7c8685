"""One key, one job; no tenant sees another's; only documented answers: I6, I11, I15."""

from collections.abc import Mapping

from coatcheck.testing.checker_evidence import Call, Evidence, Rules
from coatcheck.testing.checker_keeping import Found
from coatcheck.testing.history import Mark
from coatcheck.testing.history_client import Verb

_SUCCESSES: Mapping[str, frozenset[int]] = {
    Verb.SUBMIT: frozenset({200, 202}),
    Verb.READ: frozenset({200, 204, 304}),
    Verb.RESULT: frozenset({200, 303}),
    Verb.ATTEMPTS: frozenset({200}),
    Verb.CANCEL: frozenset({200, 202}),
    Verb.ERASE: frozenset({204}),
    Verb.LIST: frozenset({200}),
}
_PROBLEMS: Mapping[int, frozenset[str]] = {
    400: frozenset(
        {"malformed-json", "invalid-header", "invalid-parameter", "idempotency-key-required", "invalid-cursor"}
    ),
    401: frozenset({"unauthenticated"}),
    403: frozenset({"forbidden", "tenant-suspended"}),
    404: frozenset({"not-found"}),
    405: frozenset({"method-not-allowed"}),
    406: frozenset({"not-acceptable"}),
    408: frozenset({"request-timeout"}),
    409: frozenset(
        {"job-not-finished", "job-failed", "job-cancelled", "job-already-finished", "job-expired"}
        | {"idempotency-key-in-flight"}
    ),
    410: frozenset({"job-expired", "result-expired"}),
    413: frozenset({"payload-too-large"}),
    415: frozenset({"unsupported-media-type"}),
    422: frozenset({"invalid-request", "idempotency-key-reused"}),
    429: frozenset({"rate-limited", "too-many-queued", "budget-exceeded", "polling-too-fast"}),
    431: frozenset({"headers-too-large"}),
    503: frozenset({"saturated", "store-unavailable", "draining"}),
}


def one_key_is_one_job(evidence: Evidence, _rules: Rules) -> Found:
    """I6: the same key and body lead to one id; with another body the key is never accepted."""
    by_key: dict[tuple[str, str, str], list[Call]] = {}
    for call in evidence.submits:
        if call.key is not None:
            by_key.setdefault((call.tenant, call.operation or "", call.key), []).append(call)
    for (_, _, key), calls in by_key.items():
        accepted = [call for call in calls if call.mark is Mark.OK]
        bodies = {call.digest for call in accepted}
        if len(bodies) > 1:
            yield key, f"was accepted with {len(bodies)} bodies"
        made = {made for call in calls for made in evidence.jobs_by_correlation.get(call.correlation_id, ())}
        job_ids = made | {call.jobs[0]["id"] for call in accepted}
        if len(job_ids) > 1:
            yield key, f"stands for {len(job_ids)} jobs: {', '.join(sorted(job_ids))}"
        for call in calls:
            if call.code == "idempotency-key-reused" and call.digest in bodies:
                yield key, f"{call} was refused as reused, although it came with the body that was accepted"


def tenants_are_apart(evidence: Evidence, _rules: Rules) -> Found:
    """I11: nobody is shown or told of another tenant's job."""
    owners = {job_id: call.tenant for job_id, call in evidence.acknowledged.items()}
    for job_id, sightings in evidence.sightings.items():
        owner = owners.get(job_id)
        strangers = sorted({seen.tenant for seen in sightings} - {owner})
        if owner is not None and strangers:
            yield job_id, f"is {owner}'s and was shown to {', '.join(strangers)}"
    for event in evidence.events or ():
        owner = owners.get(event["subject"])
        if owner is not None and event["tenant"] != owner:
            yield event["subject"], f"is {owner}'s, and an event tells {event['tenant']} of it"


def answers_are_documented(evidence: Evidence, _rules: Rules) -> Found:
    """I15: no 500 anywhere, and of the 5xx only 503 with a documented problem; every other answer is documented too."""
    for call in evidence.calls:
        status = call.http_status
        if status is None:
            continue
        if status < 400:
            if status not in _SUCCESSES[call.verb]:
                yield call.correlation_id, f"{call} is not a documented answer"
        elif call.code not in _PROBLEMS.get(status, frozenset()):
            yield call.correlation_id, f"{call} with code {call.code} is not a documented answer"
