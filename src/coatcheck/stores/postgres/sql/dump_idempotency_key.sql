SELECT
    tenant, operation, key, algorithm, fingerprint, job_id, expires_at
FROM idempotency_key
ORDER BY tenant, operation, key
