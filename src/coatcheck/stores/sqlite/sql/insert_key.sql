-- A key that is there, its window over or not, is looked at by the caller.
INSERT INTO idempotency_key (tenant, operation, key, algorithm, fingerprint, job_id, expires_at)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
ON CONFLICT (tenant, operation, key) DO NOTHING
