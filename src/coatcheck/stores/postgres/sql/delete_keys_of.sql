DELETE FROM idempotency_key
WHERE (tenant, operation, key) IN (
    SELECT tenant, operation, key FROM idempotency_key
    WHERE tenant = $1 AND operation = $2 ORDER BY key LIMIT $3
    FOR UPDATE SKIP LOCKED
)
