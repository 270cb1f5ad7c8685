INSERT INTO coatcheck.inbox (
    job_id, tenant, operation, operation_version, priority, max_attempts, created_at, available_at, deadline_at,
    correlation_id, traceparent, payload, key, algorithm, fingerprint, key_expires_at, costs
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
-- The same row comes twice where its caller was not told of a commit. No column is named: that would take the right to
-- read it.
ON CONFLICT DO NOTHING
