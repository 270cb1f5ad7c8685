SELECT algorithm, fingerprint, job_id, expires_at
FROM idempotency_key
WHERE tenant = :tenant AND operation = :operation AND key = :key
