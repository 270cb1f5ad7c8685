DELETE FROM idempotency_key
WHERE (tenant, operation, key) IN (
    SELECT tenant, operation, key FROM idempotency_key WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
