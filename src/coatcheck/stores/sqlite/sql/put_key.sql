-- Replaces only a key whose window is over: the caller has looked in the same transaction.
INSERT OR REPLACE INTO idempotency_key (tenant, operation, key, algorithm, fingerprint, job_id, expires_at)
SELECT * FROM (
VALUES (?, ?, ?, ?, ?, ?, ?)
) WHERE column1 IS NOT NULL
