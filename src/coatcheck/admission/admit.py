"""May this submission enter? Decided from the operation, the body and its options alone; nothing is written."""

import re
from typing import Any

from pydantic import ValidationError

from coatcheck.admission.budgets import costs_of
from coatcheck.admission.correlation import is_correlation_id
from coatcheck.admission.input_faults import faults_of
from coatcheck.admission.options import Admitted, KeyOfBody, SubmissionOptions
from coatcheck.admission.quick_json import fingerprint_of, read_json
from coatcheck.app import Operation
from coatcheck.core import limits
from coatcheck.core.fingerprint import ALGORITHM
from coatcheck.core.job import InstantMs
from coatcheck.core.jsontext import Json, MalformedJson
from coatcheck.core.policy import Policy
from coatcheck.core.problems import Refused

_KEY = re.compile(f"[!-~]{{1,{limits.IDEMPOTENCY_KEY_CHARS_MAX}}}")


def admit(operation: Operation, raw_body: bytes, options: SubmissionOptions, now: InstantMs) -> Admitted:
    """Decide on a submission that arrived at `now`. Whether its deadline has passed is left to `require_time_left`.

    Raises:
        Refused: `idempotency-key-required`, `invalid-header`, `payload-too-large`, `malformed-json` or
            `invalid-request`. None of them uses up the idempotency key.
        CostFailed: the operation's own cost function failed.
    """
    policy = operation.policy
    _check_correlation_id(options.correlation_id)
    _check_key(options.idempotency_key, policy)
    start_at = now if options.start_after is None else _start(options.start_after, now)
    deadline_at = _deadline(options, policy, start_at, now)
    priority = _priority(options.priority, policy)
    body, request = check_body(operation, raw_body)
    return Admitted(
        payload=raw_body,
        admitted_at=now,
        start_at=start_at,
        deadline_at=deadline_at,
        priority=priority,
        correlation_id=options.correlation_id,
        traceparent=options.traceparent,
        key=_key_of_body(options.idempotency_key, body),
        costs=costs_of(operation, request) if policy.cost else (),
    )


def require_time_left(admitted: Admitted) -> None:
    """Return if the deadline is still to come. It may have been when the same request came first: a known key is
    looked up before this is answered.

    Raises:
        Refused: `invalid-header`.
    """
    if admitted.deadline_at is not None and admitted.deadline_at <= admitted.admitted_at:
        raise Refused("invalid-header", "Job-Deadline is not in the future.")


def parse_body(raw_body: bytes) -> Json:
    """Parse a request's body as strict JSON.

    Raises:
        Refused: `malformed-json`.
    """
    try:
        return read_json(raw_body)
    except MalformedJson as error:
        raise Refused("malformed-json", str(error)) from None


def too_large(bytes_max: int) -> Refused:
    """The refusal of a body of more than `bytes_max` bytes."""
    return Refused("payload-too-large", f"The body is larger than {bytes_max} bytes, the most this operation accepts.")


def _check_correlation_id(correlation_id: str) -> None:
    if not is_correlation_id(correlation_id):
        chars_max = limits.CORRELATION_ID_CHARS_MAX
        raise Refused("invalid-header", f"X-Correlation-ID must have 1 to {chars_max} visible ASCII characters.")


def _check_key(key: str | None, policy: Policy) -> None:
    if key is None:
        if policy.is_key_required:
            raise Refused("idempotency-key-required", "This operation takes work only with an Idempotency-Key header.")
    elif not _KEY.fullmatch(key):
        chars_max = limits.IDEMPOTENCY_KEY_CHARS_MAX
        raise Refused("invalid-header", f"Idempotency-Key must have 1 to {chars_max} visible ASCII characters.")


def _key_of_body(key: str | None, body: Json) -> KeyOfBody | None:
    return None if key is None else KeyOfBody(key, ALGORITHM, fingerprint_of(body))


def _start(start_after: InstantMs, now: InstantMs) -> InstantMs:
    if start_after > now + limits.START_AFTER_S_MAX * 1000:
        raise Refused("invalid-header", f"Job-Start-After is more than {limits.START_AFTER_S_MAX} seconds ahead.")
    return max(start_after, now)


def _deadline(options: SubmissionOptions, policy: Policy, start_at: InstantMs, now: InstantMs) -> InstantMs | None:
    deadline_at = options.deadline
    if deadline_at is None:
        return (
            None if policy.deadline_default_s is None else _default_deadline(policy.deadline_default_s, start_at, now)
        )
    if now < deadline_at <= start_at:
        raise Refused("invalid-header", "Job-Deadline is not after Job-Start-After.")
    if policy.deadline_max_s is not None and deadline_at > now + round(policy.deadline_max_s * 1000):
        raise Refused("invalid-header", f"Job-Deadline is more than {policy.deadline_max_s:g} seconds ahead.")
    return deadline_at


def _default_deadline(after_s: float, start_at: InstantMs, now: InstantMs) -> InstantMs:
    deadline_at = min(now + round(after_s * 1000), limits.INSTANT_MS_MAX)
    if deadline_at <= start_at:
        detail = f"Job-Start-After is not before the operation's deadline of {after_s:g} seconds."
        raise Refused("invalid-header", f"{detail} Send a Job-Deadline after it, where the operation allows one.")
    return deadline_at


def _priority(priority: int | None, policy: Policy) -> int:
    least, most = policy.priority_min, policy.priority_max
    if priority is None:
        return min(max(limits.PRIORITY_DEFAULT, least), most)
    if not least <= priority <= most:
        raise Refused("invalid-header", f"Job-Priority must be from {least} to {most} for this operation.")
    return priority


def check_body(operation: Operation, raw_body: bytes) -> tuple[Json, Any]:
    """The body as JSON, and as the operation's own type. Raises as `admit` does."""
    if len(raw_body) > operation.policy.payload_bytes_max:
        raise too_large(operation.policy.payload_bytes_max)
    body = parse_body(raw_body)
    try:
        request = operation.request.validate_json(raw_body)
    except ValidationError as error:
        faults = faults_of(error, body)
        raise Refused("invalid-request", f"The body does not fit {operation.name!r}.", errors=faults) from None
    return body, request
