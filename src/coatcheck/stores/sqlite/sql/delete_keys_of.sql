DELETE FROM idempotency_key
WHERE (tenant, operation, key) IN (
    SELECT tenant, operation, key FROM idempotency_key WHERE tenant = :tenant AND operation = :operation LIMIT :limit
)
