INSERT INTO idempotency_key (tenant, operation, key, algorithm, fingerprint, job_id, expires_at)
VALUES (:tenant, :operation, :key, :algorithm, :fingerprint, :job_id, :expires_at)
