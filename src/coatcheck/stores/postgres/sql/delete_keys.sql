DELETE FROM idempotency_key
WHERE (tenant, operation, key) IN (
    SELECT tenant, operation, key FROM idempotency_key WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED
)
