-- A key that is there, its window over or not, is looked at by the caller.
INSERT INTO idempotency_key (tenant, operation, key, algorithm, fingerprint, job_id, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, operation, key) DO NOTHING
RETURNING job_id
