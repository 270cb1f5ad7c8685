"""The one commit between a valid submission and its 202. Nothing else calls the store's accept_job."""

from coatcheck.acceptance.random_bits import RandomBits
from coatcheck.admission.options import Admitted, KeyOfBody
from coatcheck.app import Operation
from coatcheck.core.faults import FaultPoint, no_fault
from coatcheck.core.ids import IdSequence
from coatcheck.core.job import InstantMs
from coatcheck.core.policy import Policy
from coatcheck.store.clock import Clock
from coatcheck.store.contract import AcceptanceStore
from coatcheck.store.records import Disposition, IdempotencyKey, Submission


class Acceptance:
    """Gives admitted submissions their ids and stores them."""

    def __init__(self, store: AcceptanceStore, clock: Clock, fault_point: FaultPoint = no_fault) -> None:
        self._store = store
        self._clock = clock
        self._fault_point = fault_point
        self._ids = IdSequence()
        self._random = RandomBits()

    async def accept(self, operation: Operation, admitted: Admitted, tenant: str) -> Disposition:
        """Store a new job, or find the one its key stands for; durable when it returns.

        Raises:
            StoreUnavailable: nothing was written.
        """
        disposition = await self._store.accept_job(self._submission(operation, admitted, tenant))
        self._fault_point("after-commit-before-response")
        return disposition

    def _submission(self, operation: Operation, admitted: Admitted, tenant: str) -> Submission:
        now_us = self._clock.now_us()
        created_at = now_us // 1000
        return Submission(
            job_id=self._ids.next_id(now_us, self._random.next_bits()),
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
        )


def _key(key: KeyOfBody | None, policy: Policy, created_at: InstantMs) -> IdempotencyKey | None:
    if key is None:
        return None
    expires_at = created_at + round(policy.key_window_s * 1000)
    return IdempotencyKey(key.key, key.algorithm, key.fingerprint, expires_at)
