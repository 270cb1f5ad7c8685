-- Readers go on; whoever would write waits until this transaction ends.
LOCK TABLE
    job, payload, result, attempt, effect, idempotency_key, tombstone, ready, turn, scheduled, lease, deadline,
    outbox, inbox, tenant, api_key, limit_override, operation_mode, audit
IN EXCLUSIVE MODE NOWAIT
