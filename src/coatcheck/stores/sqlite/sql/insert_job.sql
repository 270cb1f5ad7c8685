INSERT INTO job (
    id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
    correlation_id, traceparent, chain_id, redrive_of, key_expires_at, updated_at
)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
