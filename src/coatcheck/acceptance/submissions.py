"""What an admitted submission becomes on its way to the store: it gets its id, its times and its key's window."""

from coatcheck.admission.options import Admitted, KeyOfBody
from coatcheck.app import Operation
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policy
from coatcheck.core.terms import ANY_TERMS, Terms
from coatcheck.store.records import IdempotencyKey, Submission


def submission_of(
    operation: Operation,
    admitted: Admitted,
    tenant: str,
    job_id: str,
    now_us: int,
    terms: Terms = ANY_TERMS,
) -> Submission:
    """The submission as it stands at this microsecond, under an id that nobody else has and under these terms."""
    created_at = now_us // 1000
    return Submission(
        job_id=job_id,
        tenant=tenant,
        operation=operation.name,
        operation_version=operation.version,
        payload=admitted.payload,
        created_at=created_at,
        # A start not asked for is the moment of acceptance, which may be a little after that of admission.
        available_at=max(created_at, admitted.start_at),
        deadline_at=admitted.deadline_at,
        priority=admitted.priority,
        max_attempts=operation.policy.max_attempts,
        correlation_id=admitted.correlation_id,
        traceparent=admitted.traceparent,
        key=_key(admitted.key, operation.policy, created_at),
        limits=terms.queued(tenant, operation.name),
        charges=terms.charges(tenant, operation.name, admitted.costs, created_at) if admitted.costs else (),
    )


def _key(key: KeyOfBody | None, policy: Policy, created_at: InstantMs) -> IdempotencyKey | None:
    if key is None:
        return None
    expires_at = created_at + round(policy.key_window_s * 1000)
    return IdempotencyKey(key.key, key.algorithm, key.fingerprint, expires_at)
